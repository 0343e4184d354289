"""The semantics of a server, by its endpoint and its answer to HeadBucket, and the calls that it lacks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import botocore
import pytest

from auditor.errors import CallFailed
from auditor.model.bucket import BucketFacts, Encryption, PublicAccessBlock, Semantics
from auditor.model.object import Skipped, Unread
from auditor.s3.bucket import NO_POLICY_STATUS
from auditor.s3.bucket_settings import DNS_SUFFIXES, SETTINGS, semantics_of
from auditor.s3.engines.base import Questions
from tests.s3.answers import Answers, failed, reader
from tests.support.asked_by import asked_by as asked_by
from tests.support.asked_by import reader_for
from tests.support.fakes.caller import FakeTime, make_caller
from tests.support.servers.clients import BUCKET
from tests.support.servers.hooked import HookedServer
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_calls import Call, Refused, Reply
from tests.support.servers.world import StubBucket

CEPH_ID: Final = {"x-amz-request-id": "tx00000e0f3d410cc037725-006b03debd-1017-default"}
SWIFT_ID: Final = "txb1d3ea6e5bb54b9ea65b5-0065ac1f2a-beef-x"
HERE: Final = "http://127.0.0.1:9000"

NEVER_SET: Final = {
    "ownership": "ObjectWriter",
    "public_access_block": PublicAccessBlock(),
    "policy_is_public": False,
    "policy": "",
    "versioning": "Never",
    "encryption": Encryption(),
    "request_payer": "BucketOwner",
}
"""By fact that a server may lack: the value of a bucket that never got it."""
CALLS: Final = {setting.fact: setting.action for setting in SETTINGS}
LISTING: Final = (
    b'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><IsTruncated>false</IsTruncated>'
    b"<Contents><Key>a</Key></Contents><Contents><Key>b</Key></Contents></ListBucketResult>"
)


def test_the_server_is_known_by_its_name_and_its_answer() -> None:
    cases: list[tuple[str | None, Mapping[str, str], Semantics]] = [
        (None, {}, Semantics.AWS),
        (None, CEPH_ID, Semantics.AWS),
        ("https://s3.eu-west-3.amazonaws.com", {}, Semantics.AWS),
        ("https://bucket.vpce-1.s3.eu-west-3.vpce.amazonaws.com:443", {}, Semantics.AWS),
        ("https://S3.CN-NORTH-1.AMAZONAWS.COM.CN.", {}, Semantics.AWS),
        ("https://s3.dualstack.us-gov-west-1.api.aws", {}, Semantics.AWS),
        ("https://evilamazonaws.com", {}, Semantics.OTHER),
        ("https://amazonaws.com.example", {}, Semantics.OTHER),
        (HERE, {"server": "AmazonS3"}, Semantics.AWS),
        (HERE, {"server": "AmazonS3", **CEPH_ID}, Semantics.AWS),
        (HERE, CEPH_ID, Semantics.CEPH),
        (HERE, {"x-rgw-object-count": "0"}, Semantics.CEPH),
        (HERE, {"server": "Ceph Object Gateway (squid)"}, Semantics.CEPH),
        (HERE, {"x-amz-request-id": SWIFT_ID, "x-trans-id": SWIFT_ID}, Semantics.OTHER),
        (HERE, {"x-amz-request-id": "txb1d3ea6e5bb54b9ea65b5-0065ac1f2a"}, Semantics.OTHER),
        (HERE, {"server": "MinIO", "x-amz-request-id": "17B5A1D0C0FFEE"}, Semantics.OTHER),
        (HERE, {"server": "VERSITYGW"}, Semantics.OTHER),
        (HERE, {}, Semantics.OTHER),
    ]
    assert [case for case in cases if semantics_of(*case[:2]) is not case[2]] == []


def test_the_partitions_are_those_of_botocore() -> None:
    text = (Path(botocore.__file__).parent / "data" / "partitions.json").read_text(encoding="utf-8")
    outputs = [partition["outputs"] for partition in json.loads(text)["partitions"]]
    assert {one[name] for one in outputs for name in ("dnsSuffix", "dualStackDnsSuffix")} == {*DNS_SUFFIXES}


@pytest.mark.usefixtures("asked_by")
async def test_a_refusal_names_the_server_too(stub: StubServer, bucket: StubBucket) -> None:
    def hooked(call: Call) -> Reply | None:
        refusal = Refused(403, "AccessDenied").reply(call)
        return Reply(403, {**refusal.headers, **CEPH_ID, "Server": "x"}, refusal.body) if call.bucket else None

    with HookedServer(stub.world, hooked) as server:
        async with reader_for(make_caller(FakeTime()), bucket=BUCKET, endpoint_url=server.url) as asked:
            await asked.region(None)
            assert asked.semantics is Semantics.CEPH


async def read(answers: Questions, semantics: Semantics) -> BucketFacts:
    return await reader(answers, endpoint_url=HERE).read("us-east-1", semantics)


def lacking(*facts: str, code: str = "NotImplemented", status: int = 501) -> dict[str, CallFailed]:
    return {CALLS[fact]: failed(CALLS[fact], code, status) for fact in facts}


@pytest.mark.parametrize("semantics", [Semantics.CEPH, Semantics.OTHER])
async def test_a_call_that_another_server_lacks_means_that_there_is_none(semantics: Semantics) -> None:
    for code, status in (("NotImplemented", 501), ("MethodNotAllowed", 405), ("501", 501), ("405", 405)):
        facts = await read(Answers(**lacking(*NEVER_SET, code=code, status=status)), semantics)
        assert {fact: getattr(facts, fact) for fact in NEVER_SET} == NEVER_SET
        assert facts.lacking == tuple(sorted(CALLS[fact] for fact in NEVER_SET))
        assert facts.semantics is semantics


async def test_at_aws_the_same_answer_and_anywhere_a_refusal_leave_the_setting_unread() -> None:
    for answers, semantics, code in (
        (Answers(**lacking(*NEVER_SET)), Semantics.AWS, "NotImplemented"),
        *((Answers(), semantics, "AccessDenied") for semantics in Semantics),
    ):
        facts = await read(answers, semantics)
        assert {getattr(facts, fact) for fact in NEVER_SET} == {Unread(CALLS[fact], code) for fact in NEVER_SET}
        assert facts.lacking == ()


async def test_server_without_acls_has_no_acl_and_its_owner_is_the_one_who_lists_the_bucket() -> None:
    facts = await read(Answers(**lacking("acl")), Semantics.OTHER)
    assert (facts.acl, facts.owner) == (Skipped("the server has no ACLs"), "me")
    others = await read(Answers(**lacking("acl"), ListBuckets={"Owner": {"ID": "me"}}), Semantics.OTHER)
    assert others.owner == Unread("GetBucketAcl", "NotImplemented")


@pytest.mark.parametrize(
    ("policy", "is_public"),
    [
        ({"Policy": '{"Statement": []}'}, Skipped(NO_POLICY_STATUS)),
        (failed("GetBucketPolicy", "AccessDenied"), Skipped(NO_POLICY_STATUS)),
        (failed("GetBucketPolicy", "NoSuchBucketPolicy", 404), False),
    ],
)
async def test_a_server_without_policy_status_does_not_call_a_policy_private(policy: Any, is_public: object) -> None:
    facts = await read(Answers(**lacking("policy_is_public"), GetBucketPolicy=policy), Semantics.OTHER)
    assert facts.policy_is_public == is_public


@pytest.mark.usefixtures("asked_by")
async def test_ceph_answers_a_setting_that_it_does_not_know_with_a_listing(
    stub: StubServer, bucket: StubBucket
) -> None:
    unknown = ("GetBucketOwnershipControls", "GetBucketEncryption")
    bucket.ownership = "BucketOwnerEnforced"
    with HookedServer(stub.world, lambda call: Reply(200, {}, LISTING) if call.operation in unknown else None) as odd:
        async with reader_for(make_caller(FakeTime()), bucket=BUCKET, endpoint_url=odd.url) as asked:
            facts = await asked.read("us-east-1", Semantics.CEPH)
            elsewhere = await asked.read("us-east-1", Semantics.OTHER)
    assert (facts.ownership, facts.encryption, facts.lacking) == ("ObjectWriter", Encryption(), tuple(sorted(unknown)))
    assert elsewhere.ownership == Unread("GetBucketOwnershipControls", "Malformed")
    assert elsewhere.lacking == ()
