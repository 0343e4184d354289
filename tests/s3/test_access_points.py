"""The access points of a bucket: read where the bucket policy delegates to them, never called absent if not read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from auditor.errors import CallFailed
from auditor.model.bucket import AccessPoint, BucketFacts, PublicAccessBlock
from auditor.model.object import Unread
from auditor.s3.access_points import MOST, NOT_DELEGATED, POLICY_UNREAD, delegates
from tests.s3.answers import ACCOUNT, ANOTHERS, Answers, failed, read
from tests.support.asked_by import asked_by as asked_by
from tests.support.asked_by import reader_for
from tests.support.fakes.caller import FakeTime, make_caller
from tests.support.servers.clients import client

NUMBER: Final = "123456789012"
"""moto's account. The canonical ID of its buckets' owner is another, so that only ExpectedBucketOwner proves it."""
BLOCK: Final = {
    "BlockPublicAcls": True,
    "IgnorePublicAcls": True,
    "BlockPublicPolicy": True,
    "RestrictPublicBuckets": True,
}


def policy(key: str = "s3:DataAccessPointAccount", effect: str = "Allow") -> str:
    statement = {
        "Effect": effect,
        "Principal": "*",
        "Action": "s3:*",
        "Resource": "*",
        "Condition": {"StringEquals": {key: ACCOUNT}},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def arn(name: str) -> str:
    return f"arn:aws:s3:us-east-1:{ACCOUNT}:accesspoint/{name}"


def listed(name: str, vpc: str | None = None) -> dict[str, Any]:
    entry: dict[str, Any] = {"Name": name, "AccessPointArn": arn(name), "NetworkOrigin": "VPC" if vpc else "Internet"}
    return entry | ({"VpcConfiguration": {"VpcId": vpc}} if vpc else {})


DELEGATED: Final[Mapping[str, Any]] = {
    "GetBucketPolicy": {"Policy": policy()},
    "ListAccessPoints": {"AccessPointList": [listed("web"), listed("inside", "vpc-1")]},
    "GetAccessPoint": {"PublicAccessBlockConfiguration": BLOCK},
    "GetAccessPointPolicy": {"Policy": policy()},
    "GetAccessPointPolicyStatus": {"PolicyStatus": {"IsPublic": True}},
}
ALL_ON: Final = PublicAccessBlock(True, True, True, True)


def delegated(**changes: Any) -> Answers:
    return Answers(**{**DELEGATED, **changes})


async def points(**changes: Any) -> tuple[AccessPoint, ...]:
    found = (await read(delegated(**changes))).access_points
    assert isinstance(found, tuple)
    return found


def test_a_policy_delegates_by_the_keys_of_access_points() -> None:
    named = (
        "s3:DataAccessPointArn",
        "s3:DataAccessPointAccount",
        "S3:dataaccesspointarn",
        "s3:AccessPointNetworkOrigin",
    )
    for key in (*named, "aws:SourceArn", "s3:prefix"):
        assert delegates(policy(key)) == delegates(policy(key, "Deny")) == (key in named), key
    assert not delegates("")


async def test_access_points_with_their_policies() -> None:
    answers = Answers(**DELEGATED)
    facts = await read(answers)
    shared: dict[str, Any] = {"public_access_block": ALL_ON, "policy": policy(), "policy_is_public": True}
    web = AccessPoint(arn=arn("web"), account=ACCOUNT, **shared)
    inside = AccessPoint(arn=arn("inside"), account=ACCOUNT, vpc="vpc-1", **shared)
    assert facts.access_points == (inside, web)
    assert {*answers.accounts} == {ACCOUNT}


PARTS: Final[Mapping[str, tuple[str, tuple[Any, ...]]]] = {
    "GetAccessPoint": ("public_access_block", ({}, {"PublicAccessBlockConfiguration": {}})),
    "GetAccessPointPolicy": ("policy", ({"Policy": "{"}, {})),
    "GetAccessPointPolicyStatus": ("policy_is_public", ({"PolicyStatus": {}},)),
}


async def test_a_part_that_cannot_be_read_is_unread_alone() -> None:
    for action, (field, malformed) in PARTS.items():
        for answer in (failed(action, "AccessDenied"), *malformed):
            code = "AccessDenied" if isinstance(answer, CallFailed) else "Malformed"
            for point in await points(**{action: answer}):
                parts = {name: getattr(point, name) for name, _ in PARTS.values()}
                assert parts.pop(field) == Unread(action, code)
                assert not [part for part in parts.values() if isinstance(part, Unread)]


NOT_ASKED: Final[tuple[tuple[Mapping[str, Any], object], ...]] = (
    ({"GetBucketPolicy": {"Policy": policy("aws:SourceArn")}}, NOT_DELEGATED),
    ({"GetBucketPolicy": failed("x", "NoSuchBucketPolicy", 404)}, NOT_DELEGATED),
    ({"GetBucketPolicy": failed("GetBucketPolicy", "AccessDenied")}, POLICY_UNREAD),
    (ANOTHERS, Unread("ListAccessPoints", "ForeignAccount")),
    *(
        ({action: failed(action, "AccessDenied")}, Unread(action, "AccessDenied"))
        for action in ("ListBuckets", "GetCallerIdentity")
    ),
)


async def test_no_call_is_made_where_nothing_delegates_or_the_account_may_be_another() -> None:
    for changes, found in NOT_ASKED:
        answers = delegated(**changes, Account={})
        assert (await read(answers)).access_points == found
        # The account's block and its grants.
        assert len(answers.accounts) == (0 if isinstance(found, Unread) else 2), found


def one(**members: str) -> dict[str, Any]:
    return {"AccessPointList": [members]}


NOT_ALL: Final[tuple[tuple[Any, str], ...]] = (
    (failed("ListAccessPoints", "AccessDenied"), "AccessDenied"),
    ({}, "Malformed"),
    (one(Name="../x", AccessPointArn="a", NetworkOrigin="Internet"), "Malformed"),
    (one(Name="web", NetworkOrigin="Internet"), "Malformed"),
    (one(Name="web", AccessPointArn="a"), "Malformed"),
    (one(Name="web", AccessPointArn="a", NetworkOrigin="VPC"), "Malformed"),
    ({"AccessPointList": [listed("web")], "NextToken": "again"}, "Malformed"),
    ({"AccessPointList": [listed(f"ap-{n}") for n in range(MOST + 1)]}, "TooMany"),
    ({"AccessPointList": [listed(f"ap-{n}") for n in range(MOST)], "NextToken": "t"}, "TooMany"),
)


async def test_a_listing_that_does_not_name_them_all_is_unread() -> None:
    for number, (answer, code) in enumerate(NOT_ALL):
        facts = await read(delegated(ListAccessPoints=answer))
        assert facts.access_points == Unread("ListAccessPoints", code), number


async def test_the_listing_goes_on_to_its_last_page() -> None:
    asked: list[dict[str, str]] = []

    def page(arguments: dict[str, str]) -> Mapping[str, Any]:
        asked.append(arguments)
        number = len(asked)
        return {"AccessPointList": [listed(f"ap-{number}")]} | ({"NextToken": f"t{number}"} if number < 3 else {})

    found = await points(ListAccessPoints=page)
    assert [point.arn for point in found] == [arn("ap-1"), arn("ap-2"), arn("ap-3")]
    assert asked == [{"Bucket": "b"}, {"Bucket": "b", "NextToken": "t1"}, {"Bucket": "b", "NextToken": "t2"}]


async def test_a_real_server_s_access_points(moto_url: str, monkeypatch: pytest.MonkeyPatch, asked_by: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3_CONTROL", moto_url)
    name, number = f"points-{asked_by}", NUMBER
    s3, control = client("s3", moto_url), client("s3control", moto_url)
    s3.create_bucket(Bucket=name)
    s3.put_bucket_policy(Bucket=name, Policy=policy())
    control.create_access_point(AccountId=number, Name=f"{asked_by}-web", Bucket=name)
    control.create_access_point(
        AccountId=number, Name=f"{asked_by}-inside", Bucket=name, VpcConfiguration={"VpcId": "vpc-1"}
    )
    control.put_access_point_policy(AccountId=number, Name=f"{asked_by}-web", Policy=policy())
    facts = await _read_from(moto_url, name)
    assert isinstance(facts.access_points, tuple)
    inside, web = facts.access_points
    assert (inside.vpc, inside.policy, inside.policy_is_public) == ("vpc-1", "", False)
    assert (web.vpc, web.policy, web.policy_is_public) == (None, policy(), True)
    assert web.arn == f"arn:aws:s3:us-east-1:{number}:accesspoint/{asked_by}-web"
    assert web.public_access_block == ALL_ON
    s3.put_bucket_policy(Bucket=name, Policy=policy("aws:SourceArn"))
    assert (await _read_from(moto_url, name)).access_points == NOT_DELEGATED


async def _read_from(url: str, bucket: str) -> BucketFacts:
    given = {"bucket": bucket, "endpoint_url": url, "region": "us-east-1", "expected_owner": NUMBER}
    async with reader_for(make_caller(FakeTime()), **given) as reader:
        facts: BucketFacts = await reader.read("us-east-1")
    return facts
