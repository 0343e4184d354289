"""The account's public access block applies to a bucket only if the account is known to own the bucket."""

from __future__ import annotations

import pytest

from auditor.model.bucket import BucketFacts, PublicAccessBlock
from auditor.model.object import Unread
from auditor.s3.calls import Caller
from auditor.s3.concurrency import ConcurrencyLimit
from auditor.s3.rate import RateLimit
from tests.support.asked_by import asked_by as asked_by
from tests.support.asked_by import reader_for
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import STRANGER, Odd, StubBucket

ALL_ON = PublicAccessBlock(True, True, True, True)


@pytest.fixture(autouse=True)
def account_level(stub: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller's account has every switch on, and S3 Control answers."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3_CONTROL", stub.url)
    stub.world.public_access_block = ALL_ON


async def read(stub: StubServer, expected_owner: str | None = None) -> BucketFacts:
    fields = {"bucket": BUCKET, "region": "us-east-1", "endpoint_url": stub.url, "expected_owner": expected_owner}
    async with reader_for(Caller(BUCKET, rate=RateLimit(None), permits=ConcurrencyLimit(1)), **fields) as reader:
        return await reader.read("us-east-1")


async def test_bucket_of_ones_own(stub: StubServer) -> None:
    facts = await read(stub)
    assert facts.account_public_access_block == ALL_ON
    assert facts.ignores_public_acls


async def test_bucket_of_another_account(stub: StubServer, bucket: StubBucket) -> None:
    bucket.owner = STRANGER
    facts = await read(stub)
    assert facts.account_public_access_block == Unread("GetPublicAccessBlock", "ForeignAccount")
    assert not facts.ignores_public_acls


async def test_bucket_whose_owner_nobody_names(stub: StubServer, bucket: StubBucket) -> None:
    bucket.owner = STRANGER
    bucket.odd["GetBucketAcl"] = stub.world.odd["ListBuckets"] = Odd.DENIED
    facts = await read(stub)
    assert facts.account_public_access_block == Unread("GetBucketAcl", "AccessDenied")
    assert not facts.ignores_public_acls


async def test_caller_who_does_not_know_its_own_id(stub: StubServer, bucket: StubBucket) -> None:
    bucket.owner = STRANGER
    stub.world.odd["ListBuckets"] = Odd.DENIED
    facts = await read(stub)
    assert facts.account_public_access_block == Unread("ListBuckets", "AccessDenied")
    assert not facts.ignores_public_acls


async def test_owner_that_s3_has_checked_is_enough(stub: StubServer, bucket: StubBucket) -> None:
    bucket.odd["GetBucketAcl"] = stub.world.odd["ListBuckets"] = Odd.DENIED
    facts = await read(stub, expected_owner=bucket.account)
    assert facts.account_public_access_block == ALL_ON
