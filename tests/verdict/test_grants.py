"""Laws of S3 Access Grants, on the random cases of the oracle: each case again with a grant on every object."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final

import pytest
from msgspec.structs import replace

from auditor.model.access import Audience, ObjectAccess, ReasonCode, Verdict
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, AccessGrants
from auditor.verdict.judge import VerdictJudge
from tests.verdict.case_files import INSTANCE, access_grant
from tests.verdict.oracle.generator import generate
from tests.verdict.oracle.recipe import OURS, Recipe
from tests.verdict.test_cases import NOW

SEEDS: Final = range(300)
USER: Final = "directory-user u-1"
READ: Final = {"to": "user u-1"}
WRITE: Final = {"to": "user u-1", "permission": "WRITE"}
CLOSED: Final = (Verdict.PRIVATE, Verdict.MASKED)


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


@pytest.mark.parametrize("written", [READ, WRITE], ids=["read", "write"])
def test_a_grant_never_closes_and_never_exposes(written: dict[str, str]) -> None:
    for seed in SEEDS:
        recipe = generate(seed)
        before, after = access(recipe), access(recipe, written)
        if before.verdict is Verdict.EXPOSED:
            assert after == before, seed
        elif before.verdict is Verdict.SHARED:
            assert after.verdict in (Verdict.SHARED, Verdict.UNKNOWN), seed
        elif before.verdict is Verdict.UNKNOWN:
            assert after.verdict in (Verdict.UNKNOWN, Verdict.SHARED), seed
        else:
            assert after.verdict is not Verdict.EXPOSED, seed
        if after.verdict is Verdict.SHARED and before.verdict in CLOSED:
            assert names(after) == {USER}, seed
            assert ReasonCode.ACCESS_GRANT in {reason.code for reason in after.reasons}, seed


def test_a_grant_opens_wherever_no_deny_is_in_the_way() -> None:
    opened = 0
    for seed in SEEDS:
        recipe = generate(seed)
        if recipe.statements is None or any(one["Effect"] == "Deny" for one in recipe.statements):
            continue
        before, after = access(recipe), access(recipe, READ)
        if before.verdict in CLOSED:
            assert after.verdict is Verdict.SHARED, seed
            opened += 1
    assert opened > 10


def test_a_deny_of_everything_closes_every_grant() -> None:
    deny = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "*"}
    for seed in SEEDS:
        recipe = generate(seed)
        closed = dataclasses.replace(recipe, statements=[*(recipe.statements or []), deny])
        assert access(closed, READ, WRITE).verdict in CLOSED, seed


def _trusted(recipe: Recipe) -> ObjectAccess:
    return access(recipe, READ, trusted=("u-1",))


def _own(recipe: Recipe) -> ObjectAccess:
    return access(recipe, {"to": f"arn:aws:iam::{OURS}:role/x"})


def _elsewhere(recipe: Recipe) -> ObjectAccess:
    return access(recipe, {**READ, "scope": "s3://bucket/dir-"}, {**READ, "scope": "s3://bucket-2/*"})


@pytest.mark.parametrize("change", [_own, _elsewhere, _trusted])
def test_a_grant_to_an_insider_or_elsewhere_changes_no_audience(change: Callable[[Recipe], ObjectAccess]) -> None:
    for seed in SEEDS:
        recipe = generate(seed)
        before, after = access(recipe), change(recipe)
        assert (after.verdict in CLOSED, names(after)) == (before.verdict in CLOSED, names(before)), seed


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
        assert _sorted(one) == _sorted(other), seed


def _sorted(access: ObjectAccess) -> list[Audience]:
    return sorted(access.audience, key=lambda one: one.text)
