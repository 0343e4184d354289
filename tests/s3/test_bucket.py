"""The bucket's facts: each is known, not configured, unread or skipped, and these are never confused."""

from __future__ import annotations

from typing import Final

import pytest
from msgspec.structs import replace

from auditor.model.bucket import BucketFacts, Encryption, PublicAccessBlock
from auditor.model.object import ALL_USERS, Acl, Grant, Skipped, Unread
from auditor.s3.access_points import NOT_DELEGATED
from auditor.s3.bucket import NO_ACCOUNT_LEVEL, NO_CONTROL
from auditor.s3.bucket_settings import NOT_TESTED
from auditor.s3.calls import Caller
from tests.support.asked_by import asked_by as asked_by
from tests.support.asked_by import reader_for
from tests.support.fakes.caller import FakeTime, make_caller
from tests.support.loop_blocking import free_loop as free_loop
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import ACCOUNT, OWNER, Odd, StubBucket

pytestmark = pytest.mark.usefixtures("asked_by")
QUESTIONS: Final = {
    "acl": "GetBucketAcl",
    "ownership": "GetBucketOwnershipControls",
    "public_access_block": "GetPublicAccessBlock",
    "policy_is_public": "GetBucketPolicyStatus",
    "policy": "GetBucketPolicy",
    "versioning": "GetBucketVersioning",
    "encryption": "GetBucketEncryption",
    "request_payer": "GetBucketRequestPayment",
}
"""Fact to the call that gives it."""


def unread(code: str) -> dict[str, object]:
    return {fact: Unread(action, code) for fact, action in QUESTIONS.items()}


async def read(stub: StubServer, caller: Caller | None = None) -> BucketFacts:
    """The facts of the stub's bucket, in fake time."""
    given = {"bucket": BUCKET, "endpoint_url": stub.url, "region": "us-east-1"}
    async with reader_for(caller or make_caller(FakeTime()), **given) as reader:
        facts: BucketFacts = await reader.read("us-east-1")
    return facts


class TestWhatIsKnown:
    async def test_bucket_that_was_never_configured(self, stub: StubServer, bucket: StubBucket) -> None:
        bucket.ownership = bucket.encryption = None
        assert await read(stub) == BucketFacts(
            bucket=BUCKET,
            region="us-east-1",
            owner=OWNER,
            own_id=OWNER,
            account=ACCOUNT,
            ownership="ObjectWriter",
            public_access_block=PublicAccessBlock(),
            account_public_access_block=Skipped(NO_ACCOUNT_LEVEL),
            acl=Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"),)),
            policy_is_public=False,
            policy="",
            versioning="Never",
            encryption=Encryption(),
            request_payer="BucketOwner",
            access_points=NOT_DELEGATED,
            abac=NOT_TESTED,
            tags=NOT_TESTED,
            access_grants=Skipped(NO_CONTROL),
        )

    async def test_bucket_with_everything_set(self, stub: StubServer, bucket: StubBucket) -> None:
        bucket.ownership = "BucketOwnerPreferred"
        bucket.public_access_block = PublicAccessBlock(True, False, True, False)
        bucket.acl = Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"), Grant(ALL_USERS, "READ")))
        bucket.policy, bucket.policy_is_public = '{"Statement": []}', True
        bucket.versioning, bucket.request_payer = "Suspended", "Requester"
        bucket.encryption = Encryption("aws:kms", "arn:aws:kms:us-east-1:111122223333:key/k", True)
        facts = await read(stub)
        for name in ("ownership", "public_access_block", "acl", "policy", "policy_is_public", "versioning"):
            assert getattr(facts, name) == getattr(bucket, name)
        assert (facts.encryption, facts.request_payer) == (bucket.encryption, "Requester")

    async def test_each_question_is_asked_once_and_counted_apart(self, stub: StubServer, bucket: StubBucket) -> None:
        caller = make_caller(FakeTime())
        await read(stub, caller)
        asked = [logged.operation for logged in stub.requests]
        assert sorted(asked) == sorted([*QUESTIONS.values(), "ListBuckets", "GetCallerIdentity"])
        assert dict(caller.counts) == {"bucket": 10}


class TestWhatCannotBeRead:
    async def test_denied(self, stub: StubServer, bucket: StubBucket) -> None:
        ordinary = await read(stub)
        bucket.odd["GetBucketPolicyStatus"] = Odd.DENIED
        one = await read(stub)
        assert one == replace(ordinary, policy_is_public=Unread("GetBucketPolicyStatus", "AccessDenied"))
        bucket.odd |= dict.fromkeys(QUESTIONS.values(), Odd.DENIED)
        facts = await read(stub)
        assert {fact: getattr(facts, fact) for fact in QUESTIONS} == unread("AccessDenied")

    async def test_answer_with_nothing_in_it_is_not_called_unconfigured(
        self, stub: StubServer, bucket: StubBucket
    ) -> None:
        bucket.policy = '{"Statement": []}'
        for odd, known in ((Odd.EMPTY, {}), (Odd.MALFORMED, {"versioning": "Never"})):
            bucket.odd |= dict.fromkeys(QUESTIONS.values(), odd)
            facts = await read(stub)
            assert {fact: getattr(facts, fact) for fact in QUESTIONS} == unread("Malformed") | known


class TestAccount:
    @pytest.fixture
    def control(self, stub: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3_CONTROL", stub.url)

    async def test_account_level_where_there_is_one(self, stub: StubServer, bucket: StubBucket, control: None) -> None:
        for block in (None, PublicAccessBlock(True, True, False, False)):
            stub.world.public_access_block = block
            assert (await read(stub)).account_public_access_block == (block or PublicAccessBlock())
        stub.world.odd["GetAccountPublicAccessBlock"] = Odd.DENIED
        facts = await read(stub)
        assert facts.account_public_access_block == Unread("GetPublicAccessBlock", "AccessDenied")
