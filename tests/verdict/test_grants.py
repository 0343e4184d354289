"""Laws of S3 Access Grants, on the random cases of the oracle: each case again with a grant on every object."""

from __future__ import annotations

import dataclasses
from typing import Final

from msgspec.structs import replace

from auditor.model.access import ObjectAccess, ReasonCode, Verdict
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, AccessGrants
from auditor.verdict.judge import VerdictJudge
from tests.verdict.case_files import INSTANCE, access_grant
from tests.verdict.oracle.generator import generate
from tests.verdict.oracle.recipe import OURS, Recipe
from tests.verdict.test_cases import HIDDEN, NOW

SEEDS: Final = range(100)
USER: Final = "directory-user u-1"
READ: Final = {"to": "user u-1"}
WRITE: Final = {"to": "user u-1", "permission": "WRITE"}
IDLE: Final = (
    {"to": f"arn:aws:iam::{OURS}:role/x"},
    {**READ, "scope": "s3://bucket/dir-"},
    {**READ, "scope": "s3://bucket-2/*"},
    {"to": "user u-2"},
)
"""Grants to an insider, elsewhere, and to a trusted party."""


def access(recipe: Recipe, *written: dict[str, str], trusted: tuple[str, ...] = ()) -> ObjectAccess:
    """The access with these grants. The number of the own account is known, as it is wherever grants are read."""
    grants = tuple(access_grant(f"g-{number}", one) for number, one in enumerate(written, 1))
    case = recipe.case()
    facts = replace(case.facts, access_grants=AccessGrants(account=OURS, instance=INSTANCE, grants=grants))
    judge = VerdictJudge(facts, (*recipe.trusted, *trusted), versions=case.versions, now=NOW)
    return judge.access(case.ref, case.acl, case.head)


def names(access: ObjectAccess) -> set[str]:
    """The audiences of an access, without the places through which they get in."""
    return {replace(one, through=None).text for one in access.audience}


def test_a_grant_opens_unless_denied_and_never_closes_or_exposes() -> None:
    opened = 0
    for seed in SEEDS:
        recipe = generate(seed)
        before = access(recipe)
        for written in (READ, WRITE):
            after = access(recipe, written)
            if before.verdict is Verdict.EXPOSED:
                assert after == before, seed
            elif before.verdict in HIDDEN:
                assert after.verdict is not Verdict.EXPOSED, seed
            else:
                assert after.verdict in (Verdict.SHARED, Verdict.UNKNOWN), seed
            if before.verdict not in HIDDEN:
                continue
            if after.verdict is Verdict.SHARED:
                assert names(after) == {USER}, seed
                assert ReasonCode.ACCESS_GRANT in {reason.code for reason in after.reasons}, seed
            denied = recipe.statements is None or any(one["Effect"] == "Deny" for one in recipe.statements)
            if written is READ and not denied:
                assert after.verdict is Verdict.SHARED, seed
                opened += 1
        idle = access(recipe, *IDLE, trusted=("u-2",))
        assert (idle.verdict in HIDDEN, names(idle)) == (before.verdict in HIDDEN, names(before)), seed
    assert opened > 10


def test_a_deny_of_everything_closes_every_grant() -> None:
    deny = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "*"}
    for seed in SEEDS:
        recipe = generate(seed)
        closed = dataclasses.replace(recipe, statements=[*(recipe.statements or []), deny])
        assert access(closed, READ, WRITE).verdict in HIDDEN, seed


def test_a_grant_of_writing_changes_nothing_where_acls_are_disabled() -> None:
    for seed in SEEDS:
        recipe = generate(seed)
        enforced = dataclasses.replace(recipe, facts={**recipe.facts, "ownership": BUCKET_OWNER_ENFORCED})
        assert access(enforced, WRITE) == access(enforced), seed


def test_the_order_of_grants_does_not_matter() -> None:
    several = (READ, WRITE, {"to": "arn:aws:iam::444455556666:role/y"}, {"to": "group u-2", "scope": "s3://bucket/d*"})
    for seed in SEEDS:
        recipe = generate(seed)
        one, other = access(recipe, *several), access(recipe, *reversed(several))
        assert one.verdict is other.verdict, seed
        assert {found.text for found in one.audience} == {found.text for found in other.audience}, seed
