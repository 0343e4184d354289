"""The parties that a Principal stands for, and those that a trusted entry makes insiders."""

from __future__ import annotations

import json
from typing import Any

import pytest

from auditor.model.access import Verdict
from auditor.model.bucket import BucketFacts, PublicAccessBlock, Semantics
from auditor.model.object import Acl, Unread
from auditor.verdict.judge import access_of

OWNER, OTHER = "a" * 64, "b" * 64
OURS, THEIRS = "111122223333", "444455556666"
UNREAD = Unread("Operation", "AccessDenied")
EXPOSED, UNKNOWN, SHARED, MASKED, _, PRIVATE = Verdict


def facts(**changes: Any) -> BucketFacts:
    values: dict[str, Any] = {
        "region": "eu-central-1",
        "owner": OWNER,
        "own_id": OWNER,
        "account": OURS,
        "ownership": "ObjectWriter",
        "public_access_block": PublicAccessBlock(),
        "account_public_access_block": PublicAccessBlock(),
    }
    return BucketFacts(bucket="bucket", **(values | changes))


def access(*principals: Any, trusted: tuple[str, ...] = (), **changes: Any) -> tuple[Verdict, list[str]]:
    """Return the verdict and the audiences of an object that the policy opens to each of the principals."""
    statements = [
        {"Effect": "Allow", "Principal": one, "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket/*"}
        for one in principals
    ]
    text = json.dumps({"Version": "2012-10-17", "Statement": statements})
    found = access_of(facts(policy=text, **changes), acl=Acl(OWNER, ()), trusted=trusted)
    return found.verdict, [one.text for one in found.audience]


@pytest.mark.parametrize(
    ("principal", "verdict", "audience"),
    [
        ("*", EXPOSED, ["anyone"]),
        ({"AWS": ["*"]}, EXPOSED, ["anyone"]),
        ({"AWS": OURS}, PRIVATE, []),
        ({"AWS": f"arn:aws:iam::{OURS}:root"}, PRIVATE, []),
        ({"AWS": f"arn:aws:sts::{OURS}:assumed-role/name/session"}, PRIVATE, []),
        ({"AWS": f"arn:aws-cn:iam::{OURS}:root"}, PRIVATE, []),
        ({"AWS": THEIRS}, SHARED, [f"account {THEIRS}"]),
        ({"AWS": f"arn:aws:iam::{THEIRS}:root"}, SHARED, [f"account {THEIRS}"]),
        ({"AWS": f"arn:aws:iam::{THEIRS}:user/u"}, SHARED, [f"account arn:aws:iam::{THEIRS}:user/u"]),
        ({"AWS": [OURS, THEIRS]}, SHARED, [f"account {THEIRS}"]),
        ({"AWS": [THEIRS, f"arn:aws:iam::{THEIRS}:user/u"]}, SHARED, [f"account {THEIRS}"]),
        ({"AWS": "AIDACKCEVSQ6C2EXAMPLE"}, UNKNOWN, []),
        ({"AWS": OURS[:-1]}, UNKNOWN, []),
        ({"AWS": "١" * 12}, UNKNOWN, []),
        ({"AWS": f"arn:aws:iam::{THEIRS}:*"}, UNKNOWN, []),
        ({"AWS": "arn:aws:iam:::user/else"}, SHARED, ["account arn:aws:iam:::user/else"]),
        ({"AWS": f"arn:aws:iam:::user/{OWNER}"}, PRIVATE, []),
        ({"AWS": f"arn:aws:iam::tenant:user/{OWNER}"}, SHARED, [f"account arn:aws:iam::tenant:user/{OWNER}"]),
        ({"AWS": "arn:aws:iam:::root"}, EXPOSED, ["anyone"]),
        ({"AWS": ""}, EXPOSED, ["anyone"]),
        ({"CanonicalUser": OWNER}, PRIVATE, []),
        ({"CanonicalUser": OTHER}, SHARED, [f"canonical-id {OTHER}"]),
        ({"Service": "cloudfront.amazonaws.com"}, SHARED, ["service cloudfront.amazonaws.com"]),
        ({"Federated": "accounts.google.com"}, EXPOSED, ["identity-provider accounts.google.com"]),
        ({"AWS": []}, PRIVATE, []),
    ],
)
def test_a_principal_stands_for_an_audience(principal: Any, verdict: Verdict, audience: list[str]) -> None:
    assert access(principal) == (verdict, audience)


def test_a_plain_name_is_a_user_where_the_server_is_neither_aws_nor_ceph() -> None:
    assert access({"AWS": "alice"}, semantics=Semantics.OTHER) == (SHARED, ["account alice"])
    assert access({"AWS": "alice"}) == (UNKNOWN, [])


@pytest.mark.parametrize(
    ("trusted", "principal", "verdict"),
    [
        (THEIRS, {"AWS": f"arn:aws:iam::{THEIRS}:role/x"}, PRIVATE),
        (f"arn:aws:iam::{THEIRS}:role/x", {"AWS": f"arn:aws:iam::{THEIRS}:role/x"}, PRIVATE),
        (f"arn:aws:iam::{THEIRS}:role/x", {"AWS": f"arn:aws:iam::{THEIRS}:role/y"}, SHARED),
        (OTHER, {"CanonicalUser": OTHER}, PRIVATE),
        ("*", "*", EXPOSED),
    ],
)
def test_a_trusted_principal_is_an_insider(trusted: str, principal: Any, verdict: Verdict) -> None:
    assert access(principal, trusted=(trusted,))[0] is verdict


@pytest.mark.parametrize("missing", [UNREAD, "not-a-number", ""])
def test_one_account_may_be_the_owners_if_that_is_not_known_but_not_two(missing: object) -> None:
    assert access({"AWS": THEIRS}, account=missing) == (UNKNOWN, [])
    assert access({"AWS": THEIRS}, account=missing, trusted=(THEIRS,)) == (PRIVATE, [])
    assert access({"AWS": [OURS, THEIRS]}, account=missing)[0] is SHARED


def test_all_audiences_are_named() -> None:
    many = [{"AWS": str(100000000000 + i)} for i in range(30)]
    verdict, audience = access(*many)
    assert verdict is SHARED
    assert audience == [f"account {one['AWS']}" for one in many]
