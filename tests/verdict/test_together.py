"""The judge on facts that belong together: of one membership, one owner, one source, one variable."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from auditor.model.access import ObjectAccess, Verdict
from auditor.model.bucket import AccessPoint, PublicAccessBlock
from auditor.model.object import ALL_USERS, Acl, Grant
from auditor.verdict.judge import VerdictJudge
from tests.verdict.oracle.recipe import CURRENT, DENIED, FRIEND, OTHER, OURS, OWNER, THEIRS, Recipe
from tests.verdict.oracle.worlds import NOW

_ROLE = f"arn:aws:iam::{THEIRS}:role/reader"
_FOLDERS = "arn:aws:s3:::bucket/${aws:PrincipalAccount}/*"
_IN_FOLDER = replace(CURRENT, key=f"{THEIRS}/x")
_NO_ACCOUNT = {"account": DENIED}
_OWN_POINT = f"arn:aws:s3:eu-central-1:{OURS}:accesspoint/p"


def _access(*statements: dict[str, Any], **given: Any) -> ObjectAccess:
    usual = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket/*"}
    case = Recipe(statements=[{**usual, **statement} for statement in statements], **given).case()
    judge = VerdictJudge(case.facts, case.trusted, versions=case.versions, now=datetime.fromisoformat(NOW))
    return judge.access(case.ref, case.acl, case.head)


def _audience(found: ObjectAccess) -> list[str]:
    return [one.text for one in found.audience]


# ---- one membership


@pytest.mark.parametrize(
    "outside", [{"Null": {"aws:PrincipalOrgID": "true"}}, {"StringNotLike": {"aws:PrincipalOrgID": "o-*"}}]
)
def test_a_principal_outside_all_organizations_has_no_path_in_one(outside: dict[str, Any]) -> None:
    paths = {"ForAnyValue:StringNotLike": {"aws:PrincipalOrgPaths": "o-1/*"}}
    assert _access({"Condition": {**outside, **paths}}).verdict is Verdict.PRIVATE
    assert _access({"Condition": paths}).verdict is Verdict.EXPOSED
    assert _access({"Condition": outside}).verdict is Verdict.EXPOSED


def test_a_principal_of_an_organization_has_a_path_in_it() -> None:
    inside = {
        "StringEquals": {"aws:PrincipalOrgID": "o-1"},
        "ForAnyValue:StringLike": {"aws:PrincipalOrgPaths": "o-1/r-1/*"},
    }
    assert _audience(_access({"Condition": inside})) == ["organization o-1"]


@pytest.mark.parametrize("provider", ["accounts.google.com", f"arn:aws:iam::{THEIRS}:saml-provider/p"])
def test_users_of_a_provider_in_a_trusted_organization_are_insiders(provider: str) -> None:
    statement = {
        "Principal": {"Federated": provider},
        "Condition": {"ForAnyValue:StringLike": {"aws:PrincipalOrgPaths": "o-1/*"}},
    }
    assert _access(statement, trusted=("o-1",)).verdict is Verdict.PRIVATE
    assert _access(statement).verdict in (Verdict.EXPOSED, Verdict.UNKNOWN)


# ---- one owner of the bucket


@pytest.mark.parametrize("facts", [_NO_ACCOUNT, {"own_id": FRIEND}])
def test_an_outsider_is_never_of_the_owners_account_even_if_it_is_not_known(facts: dict[str, Any]) -> None:
    own = {"StringEquals": {"aws:PrincipalAccount": "${aws:ResourceAccount}"}}
    assert _access({"Condition": own}, facts=facts).verdict is Verdict.PRIVATE
    other = {"StringNotEquals": {"aws:PrincipalAccount": "${aws:ResourceAccount}"}}
    assert _access({"Condition": other}, facts=facts).verdict is Verdict.EXPOSED


def test_an_unknown_account_of_the_owner_is_one_number_in_all_conditions() -> None:
    """Either the role's account owns the bucket, and the other statement holds; or the role gets in."""
    not_ours = {"StringNotEquals": {"s3:ResourceAccount": OURS}}
    bob = {"Principal": {"AWS": "arn:aws:iam::777788889999:user/bob"}, "Condition": not_ours}
    role = {"Principal": {"AWS": _ROLE}}
    assert _access(bob, role, facts={"own_id": FRIEND}).verdict is Verdict.SHARED
    assert _access(role, facts={"own_id": FRIEND}).verdict is Verdict.UNKNOWN


def test_an_unknown_owner_of_an_object_is_not_the_owner_of_the_bucket() -> None:
    elsewhere = {"StringNotEqualsIfExists": {"aws:SourceVpce": "vpce-1"}}
    deny = {"Effect": "Deny", "Action": "s3:*", "Condition": elsewhere}
    found = _access({}, deny, facts={"owner": DENIED}, acl=DENIED, ref=replace(CURRENT, owner=None))
    assert found.verdict is Verdict.SHARED


# ---- one source of a service


@pytest.mark.parametrize(("key", "owner"), [("aws:SourceAccount", THEIRS), ("aws:SourceOrgID", "o-1")])
def test_a_source_that_must_belong_to_a_trusted_owner_is_trusted(key: str, owner: str) -> None:
    condition = {"ArnLike": {"aws:SourceArn": "arn:aws:s3:::source"}, "StringEquals": {key: owner}}
    assert _audience(_access({"Condition": condition})) == ["source arn:aws:s3:::source"]
    found = _access({"Condition": condition}, trusted=(owner,))
    assert found.verdict is Verdict.PRIVATE
    assert f"trusted: {owner}" in [one.text for one in found.reasons]


def test_a_source_that_may_belong_to_others_than_the_trusted_owner_is_not_trusted() -> None:
    by_name = {"ArnLike": {"aws:SourceArn": "arn:aws:s3:::source"}}
    named = {"Principal": {"AWS": OURS}, "Condition": {"StringEquals": {"aws:SourceAccount": THEIRS}}}
    assert _audience(_access({"Condition": by_name}, named, trusted=(THEIRS,))) == ["source arn:aws:s3:::source"]


# ---- one variable


def test_a_folder_of_a_trusted_account_is_private() -> None:
    assert _access({"Resource": _FOLDERS}, ref=_IN_FOLDER, trusted=(THEIRS,)).verdict is Verdict.PRIVATE
    assert _access({"Resource": _FOLDERS}, ref=_IN_FOLDER, trusted=(_ROLE,)).verdict is Verdict.EXPOSED
    other = replace(CURRENT, key="777788889999/x")
    assert _access({"Resource": _FOLDERS}, ref=other, trusted=(THEIRS,)).verdict is Verdict.EXPOSED


def test_a_canonical_id_may_be_another_principal_of_a_named_principals_account() -> None:
    statement = {
        "Principal": {"CanonicalUser": OTHER},
        "Resource": _FOLDERS,
        "Condition": {"ArnNotLike": {"aws:PrincipalArn": _ROLE}},
    }
    assert _audience(_access(statement, ref=_IN_FOLDER)) == [f"canonical-id {OTHER}"]


def test_other_principals_of_a_named_principals_account_get_in() -> None:
    statement = {"Resource": _FOLDERS, "Condition": {"ArnNotLike": {"aws:PrincipalArn": _ROLE}}}
    assert _audience(_access(statement, ref=_IN_FOLDER)) == [f"account {THEIRS}"]


def test_a_canonical_id_may_be_of_the_last_of_many_accounts() -> None:
    accounts = [f"4444555{number:05d}" for number in range(40)]
    statement = {
        "Principal": {"CanonicalUser": OTHER},
        "Condition": {"StringEquals": {"aws:PrincipalAccount": accounts[-1]}},
    }
    others = {"Principal": {"AWS": accounts[:-1]}, "Condition": {"StringEquals": {"aws:PrincipalAccount": OURS}}}
    assert _access(others, statement).verdict is Verdict.SHARED


def test_a_role_of_a_unique_id_is_the_role_that_an_arn_names() -> None:
    condition = {"StringNotLike": {"aws:userid": "AROAEXAMPLE:*"}, "ArnLike": {"aws:PrincipalArn": _ROLE}}
    assert _access({"Condition": condition}, trusted=(_ROLE,)).verdict is Verdict.PRIVATE
    assert _access({"Condition": condition}).verdict is Verdict.SHARED


def test_the_path_of_a_role_may_have_colons() -> None:
    condition = {
        "StringLike": {"aws:PrincipalArn": "arn:aws:iam::*:role/x"},
        "ArnNotLike": {"aws:PrincipalArn": "arn:aws:iam::*:role/x"},
    }
    assert _access({"Condition": condition}).verdict is Verdict.EXPOSED


def test_a_requester_avoids_a_deny_by_a_tag_unlike_the_objects() -> None:
    same = {"StringEquals": {"aws:PrincipalTag/team": "${s3:ExistingObjectTag/team}"}}
    acl = Acl(OWNER, (Grant(OTHER, "READ"),))
    deny = {"Effect": "Deny", "Action": "s3:*", "Condition": same}
    assert _audience(_access(deny, acl=acl)) == [f"canonical-id {OTHER}"]
    unlike = {"StringNotEquals": {"aws:PrincipalTag/team": "${s3:ExistingObjectTag/team}"}}
    assert _access({**deny, "Condition": unlike}, acl=acl).verdict is Verdict.UNKNOWN
    assert _access({"Condition": same}).verdict is Verdict.UNKNOWN
    everyone = Acl(OWNER, (Grant(ALL_USERS, "READ"),))
    assert _access(deny, acl=everyone).verdict is Verdict.EXPOSED


def test_no_tag_of_a_principal_has_the_text_of_a_variable() -> None:
    condition = {"StringEquals": {"aws:PrincipalTag/team": "${s3:ExistingObjectTag/team}"}}
    assert _access({"Condition": condition}, version="2008-10-17").verdict is Verdict.PRIVATE
    header = {"StringEquals": {"aws:Referer": "${s3:ExistingObjectTag/team}"}}
    assert _access({"Condition": header}, version="2008-10-17").verdict is Verdict.EXPOSED


def test_an_unread_policy_that_is_public_is_hidden_by_the_access_points_own_block() -> None:
    block = PublicAccessBlock(restrict_public_buckets=True)
    point = AccessPoint(
        arn=_OWN_POINT, account=OURS, vpc=None, public_access_block=block, policy=DENIED, policy_is_public=True
    )
    through = {"Condition": {"StringEquals": {"s3:DataAccessPointArn": _OWN_POINT}}}
    assert _access(through, facts={"access_points": (point,)}).verdict is Verdict.MASKED
    maybe = replace(point, policy_is_public=DENIED)
    assert _access(through, facts={"access_points": (maybe,)}).verdict is Verdict.UNKNOWN
