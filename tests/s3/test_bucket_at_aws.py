"""The region, owner and account of a bucket at AWS, as the answers to the questions let them be known."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.errors import BucketError
from auditor.model.bucket import PublicAccessBlock
from auditor.model.object import Skipped, Unread
from tests.s3.answers import ACCOUNT, ANOTHERS, Answers, failed, read, reader

REGION = "x-amz-bucket-region"
ELSEWHERE = "https://s3.example"


@pytest.mark.parametrize(
    ("answer", "explicit", "endpoint", "region"),
    [
        ({REGION: "eu-west-3"}, None, None, "eu-west-3"),
        ({REGION: "eu-west-3"}, "eu-west-3", None, "eu-west-3"),
        ({REGION: "eu-west-3"}, "us-east-1", ELSEWHERE, "eu-west-3"),
        ({}, None, None, Unread("HeadBucket", "Malformed")),
        ({}, None, ELSEWHERE, Skipped("a custom endpoint names no region")),
        ({REGION: "evil.example/"}, "us-east-1", None, Unread("HeadBucket", "Malformed")),
        (failed("HeadBucket", "403"), None, None, Unread("HeadBucket", "403")),
        (failed("HeadBucket", "403", x_amz_bucket_region="eu-west-3"), None, None, "eu-west-3"),
        (failed("HeadBucket", "PermanentRedirect", 301, x_amz_bucket_region="eu-west-3"), None, None, "eu-west-3"),
    ],
)
async def test_region(answer: Any, explicit: str | None, endpoint: str | None, region: Any) -> None:
    assert await reader(Answers(HeadBucket=answer), endpoint_url=endpoint).region(explicit) == region


async def test_region_that_none_can_be() -> None:
    for named in ("evil.example/#", "../..", "a b", "-eu", "12345", "x" * 64, "my_zone", "eu\u00e9"):
        region = await reader(Answers(HeadBucket={REGION: named}), endpoint_url=ELSEWHERE).region(None)
        assert isinstance(region, Skipped), named
    for named in ("eu-west-1", "default", "a"):
        assert await reader(Answers(HeadBucket={REGION: named}), endpoint_url=ELSEWHERE).region(None) == named


@pytest.mark.parametrize(
    ("answer", "explicit", "sentence"),
    [
        (
            {REGION: "eu-west-3"},
            "us-east-1",
            "the bucket 'b' is in eu-west-3, not in us-east-1: use --region eu-west-3",
        ),
        (failed("HeadBucket", "404", 404), None, "there is no bucket named 'b'"),
        (failed("HeadBucket", "NoSuchBucket", 404), None, "there is no bucket named"),
        (failed("HeadBucket", "Timeout", 0), None, r"S3 cannot be reached \(Timeout\)"),
        (failed("HeadBucket", "ConnectionError", 0), None, r"S3 cannot be reached \(ConnectionError\)"),
        (failed("HeadBucket", "PermanentRedirect", 301), None, "region"),
    ],
)
async def test_bucket_that_cannot_be_audited(answer: Any, explicit: str | None, sentence: str) -> None:
    with pytest.raises(BucketError, match=sentence):
        await reader(Answers(HeadBucket=answer)).region(explicit)


async def test_server_that_does_not_answer_is_named() -> None:
    for code in ("Timeout", "ConnectionError"):
        silent = Answers(HeadBucket=failed("HeadBucket", code, 0))
        with pytest.raises(BucketError, match=rf"^{ELSEWHERE} cannot be reached \({code}\)"):
            await reader(silent, endpoint_url=ELSEWHERE).region(None)


BLOCK = {"Account": {"PublicAccessBlockConfiguration": {"IgnorePublicAcls": True}}}
IGNORES = PublicAccessBlock(ignore_public_acls=True)
LIST_DENIED = {"ListBuckets": failed("ListBuckets", "AccessDenied")}


@pytest.mark.parametrize(
    ("changes", "expected_owner", "block", "asked"),
    [
        (BLOCK, None, IGNORES, True),
        ({}, None, Unread("GetPublicAccessBlock", "AccessDenied"), True),
        ({"Account": failed("x", "NoSuchPublicAccessBlockConfiguration", 404)}, None, PublicAccessBlock(), True),
        ({"Account": {}}, None, Unread("GetPublicAccessBlock", "Malformed"), True),
        (BLOCK | LIST_DENIED, None, Unread("ListBuckets", "AccessDenied"), False),
        (BLOCK | LIST_DENIED, ACCOUNT, IGNORES, True),
        (BLOCK | ANOTHERS, None, Unread("GetPublicAccessBlock", "ForeignAccount"), False),
        (BLOCK | ANOTHERS, "444455556666", Unread("GetPublicAccessBlock", "ForeignAccount"), False),
        (
            BLOCK | {"GetBucketAcl": failed("x", "AccessDenied"), "ListBuckets": {"Owner": {"ID": "me"}}},
            None,
            Unread("GetBucketAcl", "AccessDenied"),
            False,
        ),
        (
            BLOCK | {"GetCallerIdentity": failed("x", "AccessDenied")},
            None,
            Unread("GetCallerIdentity", "AccessDenied"),
            False,
        ),
        (BLOCK | {"GetCallerIdentity": {}}, None, Unread("GetCallerIdentity", "Malformed"), False),
    ],
)
async def test_block_of_the_account(changes: Any, expected_owner: str | None, block: object, asked: bool) -> None:
    answers = Answers(**changes)
    facts = await read(answers, expected_owner=expected_owner)
    assert facts.account_public_access_block == block
    assert answers.accounts == [ACCOUNT, ACCOUNT] * asked  # for the block, and for the S3 Access Grants


@pytest.mark.parametrize(
    ("changes", "owner", "own_id"),
    [
        ({}, "me", "me"),
        (ANOTHERS, "other", "me"),
        ({"GetBucketAcl": failed("x", "AccessDenied")}, "me", "me"),
        (LIST_DENIED, "me", Unread("ListBuckets", "AccessDenied")),
        ({"ListBuckets": {"Owner": {}}}, "me", Unread("ListBuckets", "Malformed")),
        ({"ListBuckets": {}}, "me", Unread("ListBuckets", "Malformed")),
        (
            {
                "GetBucketAcl": failed("x", "AccessDenied"),
                "ListBuckets": {"Owner": {"ID": "me"}, "Buckets": [{"Name": "b2"}, {}]},
            },
            Unread("GetBucketAcl", "AccessDenied"),
            "me",
        ),
    ],
)
async def test_owner(changes: Any, owner: object, own_id: object) -> None:
    facts = await read(Answers(**changes))
    assert (facts.bucket, facts.region, facts.owner, facts.own_id) == ("b", "us-east-1", owner, own_id)


async def test_refused_sts_is_named_where_the_listing_of_buckets_is_refused_too() -> None:
    """Without the number of the caller's account, the right to list buckets would not help."""
    refused = failed("GetCallerIdentity", "AccessDenied")
    facts = await read(Answers(**LIST_DENIED, GetCallerIdentity=refused))
    assert facts.owner_account == Unread("GetCallerIdentity", "AccessDenied")
