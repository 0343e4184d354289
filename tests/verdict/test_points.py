"""The judge on access points of the bucket, and on sources of services, that a policy lets in at named places only."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from auditor.model.access import ObjectAccess, ReasonCode, Verdict
from auditor.model.bucket import AccessPoint, PublicAccessBlock
from auditor.model.object import Unread
from auditor.verdict.judge import VerdictJudge
from tests.verdict.oracle.recipe import DENIED, FRIEND, OURS, THEIRS, Recipe
from tests.verdict.oracle.worlds import NOW

_ARN = f"arn:aws:s3:eu-central-1:{OURS}:accesspoint/q"
_EVERYONE = '{"Statement": {"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": "*"}}'
_THROUGH_OURS = {"s3:DataAccessPointAccount": OURS}
_PLACES: list[dict[str, Any]] = [
    {"IpAddress": {"aws:SourceIp": "192.0.2.0/24"}},
    {"StringLike": {"aws:SourceVpce": "vpce-1"}},
    {"StringLike": {"aws:SourceVpc": "vpc-1"}},
]


def _point(vpc: str | None = None, policy: str | Unread = _EVERYONE) -> AccessPoint:
    return AccessPoint(
        arn=_ARN,
        account=OURS,
        vpc=vpc,
        public_access_block=PublicAccessBlock(),
        policy=policy,
        policy_is_public=True,
    )


def _access(*conditions: dict[str, Any], **facts: object) -> ObjectAccess:
    allow = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket/*"}
    case = Recipe(statements=[{**allow, "Condition": condition} for condition in conditions], facts=facts).case()
    judge = VerdictJudge(case.facts, case.trusted, versions=case.versions, now=datetime.fromisoformat(NOW))
    return judge.access(case.ref, case.acl, case.head)


@pytest.mark.parametrize("place", _PLACES)
def test_unread_access_points_possibly_let_in_from_a_named_place(place: dict[str, Any]) -> None:
    found = _access({**place, "StringEquals": _THROUGH_OURS}, access_points=DENIED)
    assert found.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("place", _PLACES)
def test_an_open_access_point_lets_in_from_a_named_place(place: dict[str, Any]) -> None:
    found = _access({**place, "StringEquals": _THROUGH_OURS}, access_points=(_point(),))
    assert found.verdict is Verdict.SHARED


def test_an_open_access_point_exposes_without_a_named_place() -> None:
    found = _access({"StringEquals": _THROUGH_OURS}, access_points=(_point(),))
    assert found.verdict is Verdict.EXPOSED


@pytest.mark.parametrize(("vpc", "verdict"), [("vpc-1", Verdict.SHARED), ("vpc-2", Verdict.PRIVATE)])
def test_an_access_point_of_a_vpc_takes_requests_from_there_only(vpc: str, verdict: Verdict) -> None:
    condition = {"StringEquals": {**_THROUGH_OURS, "aws:SourceVpc": vpc, "aws:SourceVpce": "vpce-1"}}
    assert _access(condition, access_points=(_point("vpc-1"),)).verdict is verdict


def test_an_access_point_of_a_vpc_without_its_policy_is_unknown() -> None:
    found = _access({"StringEquals": _THROUGH_OURS}, access_points=(_point("vpc-1", DENIED),))
    assert found.verdict is Verdict.UNKNOWN


def test_an_unread_account_may_own_the_named_access_points() -> None:
    assert _access({"StringEquals": _THROUGH_OURS}, account=DENIED).verdict is Verdict.UNKNOWN


def test_a_pattern_of_sources_is_none_of_the_named_sources() -> None:
    by_name = {"ArnEquals": {"aws:SourceArn": "arn:aws:s3:::source"}}
    found = _access(by_name, {**by_name, "StringLike": {"aws:SourceArn": "arn:aws:s3:::*"}})
    assert [one.text for one in found.audience] == ["source arn:aws:s3:::source"]


def test_headers_come_in_the_order_of_their_names() -> None:
    found = _access({"Null": {"aws:UserAgent": "false", "aws:Referer": "false"}})
    assert [one.text for one in found.audience] == ["anyone through header aws:Referer and aws:UserAgent"]


@pytest.mark.parametrize("place", _PLACES)
def test_another_accounts_access_point_lets_in_from_a_named_place(place: dict[str, Any]) -> None:
    found = _access({**place, "StringEquals": {"s3:DataAccessPointAccount": THEIRS}})
    assert found.verdict is Verdict.SHARED
    (only,) = found.audience
    assert only.text.startswith(f"access-point arn:*:s3:*:{THEIRS}:accesspoint/* through ")


@pytest.mark.parametrize("place", _PLACES)
def test_an_access_point_of_any_account_lets_in_from_a_named_place(place: dict[str, Any]) -> None:
    found = _access({**place, "StringNotEquals": {"s3:DataAccessPointAccount": OURS}})
    assert found.verdict is Verdict.SHARED


@pytest.mark.parametrize("origin", ["Internet", "VPC"])
def test_another_accounts_access_point_has_either_origin(origin: str) -> None:
    theirs = {"s3:DataAccessPointAccount": THEIRS, "s3:AccessPointNetworkOrigin": origin}
    found = _access({"StringEquals": theirs, "StringLike": {"aws:SourceVpc": "vpc-1"}})
    assert found.verdict is Verdict.SHARED


def test_a_listed_access_point_shares_whether_or_not_its_account_owns_the_bucket() -> None:
    """Its account is an outsider if it does not own the bucket; if it does, the source is another account's."""
    source = {"StringLike": {"aws:SourceArn": f"arn:aws:cloudfront::{THEIRS}:distribution/*"}}
    facts = {"own_id": FRIEND, "access_points": (_point(policy=""),)}
    assert _access({"StringEquals": _THROUGH_OURS}, source, **facts).verdict is Verdict.SHARED
    assert _access({"StringEquals": _THROUGH_OURS}, **facts).verdict is Verdict.UNKNOWN


def _closed(name: str) -> AccessPoint:
    block = PublicAccessBlock(restrict_public_buckets=True)
    return replace(_point(), arn=_ARN[:-1] + name, public_access_block=block)


@pytest.mark.parametrize("said", [True, DENIED])
def test_an_access_point_that_restricts_its_public_policy_hides_the_object(said: bool | Unread) -> None:
    found = _access({"StringEquals": _THROUGH_OURS}, access_points=(replace(_closed("q"), policy_is_public=said),))
    assert found.verdict is Verdict.MASKED
    assert [one.text for one in found.reasons] == ["policy-allow: #1", f"restrict-public-buckets: access point {_ARN}"]


def test_a_restricted_access_point_does_not_hide_another() -> None:
    found = _access({"StringEquals": _THROUGH_OURS}, access_points=(_closed("p"), _point()))
    assert found.verdict is Verdict.EXPOSED


@pytest.mark.parametrize(("points", "verdict"), [(8, Verdict.SHARED), (60, Verdict.SHARED), (3000, Verdict.UNKNOWN)])
def test_too_many_access_points_and_networks_leave_open_who_gets_in(points: int, verdict: Verdict) -> None:
    """The last access point alone lets requests in, and from the last network only."""
    networks = [f"203.0.{number}.0/24" for number in range(20)]
    conditions = [{"IpAddress": {"aws:SourceIp": one}, "StringEquals": _THROUGH_OURS} for one in networks]
    shut = [replace(_point(policy=""), arn=f"{_ARN}{number}") for number in range(points - 1)]
    found = _access(*conditions, access_points=(*shut, _point()))
    assert found.verdict is verdict
    if verdict is Verdict.UNKNOWN:
        assert [one.code for one in found.reasons] == [ReasonCode.TOO_COMPLEX]
        assert re.fullmatch(r"too-complex: [0-9,]+ steps, at most [0-9,]+", found.reasons[0].text)


def test_too_many_access_points_do_not_hide_that_one_exposes() -> None:
    conditions = [{"IpAddress": {"aws:SourceIp": f"203.0.{number}.0/24"}} for number in range(20)]
    through = [{**one, "StringEquals": _THROUGH_OURS} for one in conditions]
    shut = [replace(_point(policy=""), arn=f"{_ARN}{number}") for number in range(60)]
    found = _access(*through, {"StringEquals": _THROUGH_OURS}, access_points=(*shut, _point()))
    assert found.verdict is Verdict.EXPOSED


def test_many_accounts_and_networks_are_told_apart_at_an_access_point() -> None:
    accounts = [f"4444555{number:05d}" for number in range(300)]
    networks = [f"203.0.{number}.0/24" for number in range(20)]
    by_name = {"Effect": "Allow", "Principal": {"AWS": accounts[0]}, "Action": "s3:*", "Resource": "*"}
    policy = json.dumps({"Statement": by_name})
    allow = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket/*"}
    condition = {"IpAddress": {"aws:SourceIp": networks}, "StringEquals": _THROUGH_OURS}
    statement = {**allow, "Principal": {"AWS": accounts}, "Condition": condition}
    case = Recipe(
        statements=[statement], facts={"access_points": (replace(_point(policy=policy), policy_is_public=False),)}
    ).case()
    found = VerdictJudge(case.facts, case.trusted).access(case.ref, case.acl, case.head)
    assert found.verdict is Verdict.SHARED
    assert {one.name for one in found.audience} == {accounts[0]}
