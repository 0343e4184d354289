"""The bucket's ABAC and its tags: read where the policy asks for a tag, and nowhere else."""

from __future__ import annotations

import hmac
import json
import os
import re
from hashlib import sha256
from typing import Any

import pytest

from auditor.model.bucket import BucketFacts, Semantics
from auditor.model.object import Unread
from auditor.s3.bucket_settings import ABAC_IS_OFF, MAY_BE_TESTED, NOT_TESTED
from tests.support.asked_by import asked_by as asked_by
from tests.support.asked_by import reader_for
from tests.support.fakes.caller import FakeTime, make_caller
from tests.support.loop_blocking import free_loop as free_loop
from tests.support.servers.clients import BUCKET
from tests.support.servers.hooked import HookedServer
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_calls import Reply
from tests.support.servers.world import ACCOUNT, Odd, StubBucket

pytestmark = pytest.mark.usefixtures("asked_by")
CALLS = ("GetBucketAbac", "GetBucketTagging")


def policy(condition: dict[str, Any], resource: str = f"arn:aws:s3:::{BUCKET}/*") -> str:
    statement = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": resource}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement | {"Condition": condition}]})


TEAM = policy({"StringEquals": {"aws:ResourceTag/team": "red"}})


async def read(url: str, semantics: Semantics = Semantics.AWS) -> BucketFacts:
    given = {"bucket": BUCKET, "endpoint_url": url, "region": "us-east-1", "expected_owner": ACCOUNT}
    async with reader_for(make_caller(FakeTime()), **given) as reader:
        facts: BucketFacts = await reader.read("us-east-1", semantics)
    return facts


ASKING = (
    policy({"StringEquals": {"aws:ResourceTag/team": "red"}}),
    policy({"Null": {"AWS:resourceTag/team": "true"}}),
    policy({"StringEquals": {"s3:BucketTag/team": "red"}}),
    policy({"StringEquals": {"aws:PrincipalTag/team": "${aws:ResourceTag/team}"}}),
    policy({"StringEquals": {"aws:PrincipalTag/team": "x-${ s3:BucketTag/team, 'none'}"}}),
    policy({}, f"arn:aws:s3:::{BUCKET}/${{aws:ResourceTag/team}}/*"),
)


async def test_a_policy_that_asks_for_a_tag(stub: StubServer, bucket: StubBucket) -> None:
    bucket.abac, bucket.tags = "Enabled", {"team": "red", "secret": "never kept"}
    for bucket.policy in ASKING:
        stub.forget()
        facts = await read(stub.url)
        assert (facts.abac, facts.tags) == (True, {"team": "red"}), bucket.policy
        asked = [call for call in stub.calls if call.operation in CALLS]
        assert [call.operation for call in asked] == [*CALLS]
        assert {call.headers.get("x-amz-expected-bucket-owner") for call in asked} == {ACCOUNT}


async def test_no_other_policy_asks_a_call(stub: StubServer, bucket: StubBucket) -> None:
    bucket.abac, bucket.tags = "Enabled", {"team": "red"}
    for bucket.policy in (None, policy({}), policy({"StringEquals": {"s3:ExistingObjectTag/team": "red"}})):
        facts = await read(stub.url)
        assert (facts.abac, facts.tags) == (NOT_TESTED, NOT_TESTED), bucket.policy
    bucket.policy, bucket.odd["GetBucketPolicy"] = TEAM, Odd.DENIED
    facts = await read(stub.url)
    assert (facts.abac, facts.tags) == (MAY_BE_TESTED, MAY_BE_TESTED)
    assert not [call for call in stub.calls if call.operation in CALLS]


async def test_each_spelling_of_a_tag_is_kept(stub: StubServer, bucket: StubBucket) -> None:
    bucket.policy, bucket.abac = policy({"StringEquals": {"aws:ResourceTag/Team": "red"}}), "Enabled"
    bucket.tags = {"TEAM": "red", "team": "blue"}
    assert (await read(stub.url)).tags == {"TEAM": "red", "Team": None, "team": "blue"}


async def test_a_tag_that_the_bucket_does_not_have(stub: StubServer, bucket: StubBucket) -> None:
    bucket.policy, bucket.abac = TEAM, "Enabled"
    assert (await read(stub.url)).tags == {"team": None}
    bucket.tags = {"other": "x"}
    assert (await read(stub.url)).tags == {"team": None}


async def test_without_abac_no_condition_sees_the_tags(stub: StubServer, bucket: StubBucket) -> None:
    bucket.policy, bucket.tags = TEAM, {"team": "red"}
    facts = await read(stub.url)
    assert (facts.abac, facts.tags) == (False, ABAC_IS_OFF)
    assert stub.count("GetBucketTagging") == 0


async def test_an_answer_that_tells_nothing_is_unread(stub: StubServer, bucket: StubBucket) -> None:
    bucket.policy, bucket.abac, bucket.tags = TEAM, "Enabled", {"team": "red"}
    for odd, code in ((Odd.DENIED, "AccessDenied"), (Odd.EMPTY, "Malformed"), (Odd.MALFORMED, "Malformed")):
        bucket.odd = {"GetBucketAbac": odd}
        facts = await read(stub.url)
        assert (facts.abac, facts.tags) == (Unread("GetBucketAbac", code), {"team": "red"})
        bucket.odd = {"GetBucketTagging": odd}
        facts = await read(stub.url)
        assert (facts.abac, facts.tags) == (True, Unread("GetBucketTagging", code))
    bucket.odd = {}
    for bucket.abac in ("", "On", "enabled"):
        assert (await read(stub.url)).abac == Unread("GetBucketAbac", "Malformed")


async def test_another_server_without_the_calls_has_no_abac(stub: StubServer, bucket: StubBucket) -> None:
    bucket.policy = TEAM
    with HookedServer(stub.world, lambda call: Reply(501) if call.operation in CALLS else None) as server:
        facts = await read(server.url, Semantics.OTHER)
        assert (facts.abac, facts.tags, facts.lacking) == (False, ABAC_IS_OFF, ("GetBucketAbac",))
        assert (await read(server.url)).abac == Unread("GetBucketAbac", "501")


async def test_the_signature_is_that_of_the_question(stub: StubServer, bucket: StubBucket, asked_by: str) -> None:
    """An older SDK does not know the call. Its request is another one until it is signed."""
    bucket.policy = TEAM
    await read(stub.url)
    (call,) = (one for one in stub.calls if one.operation == "GetBucketAbac")
    scope, names, signature = re.findall(
        r"(?:Credential=[^/]+/|SignedHeaders=|Signature=)([^, ]+)", call.headers["authorization"]
    )
    headers = "".join(f"{name}:{call.headers[name]}\n" for name in names.split(";"))
    path = f"/{BUCKET}/" if asked_by == "direct" else f"/{BUCKET}"
    canonical = f"GET\n{path}\nabac=\n{headers}\n{names}\n{call.headers['x-amz-content-sha256']}"
    text = f"AWS4-HMAC-SHA256\n{call.headers['x-amz-date']}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{os.environ['AWS_SECRET_ACCESS_KEY']}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.digest(key, part.encode(), "sha256")
    assert key.hex() == signature
