"""The list of an account's buckets, page by page."""

from __future__ import annotations

import pytest

from auditor.aws.connection import Connection
from auditor.s3.bucket_list import ListedBucket, account_of, list_buckets
from tests.support.servers.accounts import OWN, AccountsServer
from tests.support.servers.stub_calls import Call, Reply
from tests.support.servers.stub_xml import document


def connection(server: AccountsServer) -> Connection:
    return Connection(bucket="", region="us-east-1", endpoint_url=server.url)


def test_every_page_is_read() -> None:
    with AccountsServer(page=3) as server:
        server.give(OWN, *(f"b{number:02}" for number in range(10)))
        server.world.buckets["b07"].region = "eu-central-1"
        listing = list_buckets(connection(server), page=3)
    assert [bucket.name for bucket in listing.buckets] == [f"b{number:02}" for number in range(10)]
    assert listing.buckets[7] == ListedBucket("b07", "eu-central-1")
    assert listing.failure is None
    pages = [call.query for _, call in server.seen if call.operation == "ListBuckets"]
    assert [page["max-buckets"] for page in pages] == ["3"] * 4


def test_listing_that_breaks_off_keeps_what_it_has() -> None:
    with AccountsServer(page=3, broken_after={OWN: 2}) as server:
        server.give(OWN, *(f"b{number:02}" for number in range(10)))
        listing = list_buckets(connection(server), page=3)
    assert len(listing.buckets) == 6
    assert listing.failure is not None
    assert listing.failure.code == "AccessDenied"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("<Owner><ID>a</ID></Owner><Buckets/><ContinuationToken>again</ContinuationToken>", "RepeatedToken"),
        ("<Buckets/>", "Malformed"),
        ("<Owner><ID>a</ID></Owner><Buckets><Bucket/></Buckets>", "Malformed"),
    ],
)
def test_answer_that_proves_no_end_is_a_failure(body: str, code: str) -> None:
    """A server that repeats its page, or that answers with something else, has not listed every bucket."""
    with AccountsServer() as server:

        def listing(call: Call, account: str) -> Reply:
            return Reply(200, {"Content-Type": "application/xml"}, document("ListAllMyBucketsResult", body))

        server._listing = listing  # type: ignore[method-assign]
        found = list_buckets(connection(server))
    assert found.failure is not None
    assert found.failure.code == code


def test_account_of_the_credentials_which_may_have_no_bucket() -> None:
    with AccountsServer() as server:
        listing = list_buckets(connection(server))
        assert (listing.buckets, listing.failure) == ((), None)
        assert account_of(connection(server)) == OWN
