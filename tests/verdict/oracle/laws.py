"""Laws of verdicts that need no second opinion, on large policies. A policy that is too complex obeys each of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import Any, Final, NamedTuple

from auditor.model.access import ReasonCode, Verdict
from auditor.model.bucket import PublicAccessBlock
from auditor.verdict.judge import VerdictJudge
from tests.verdict.oracle.large import LARGE, generate_large
from tests.verdict.oracle.recipe import Recipe
from tests.verdict.oracle.worlds import NOW

_NOW: Final = datetime.fromisoformat(NOW)
_WIDTH: Final = (Verdict.PRIVATE, Verdict.MASKED, Verdict.SHARED, Verdict.EXPOSED)
"""The decided verdicts, the narrowest first."""


class Judged(NamedTuple):
    """The judge's answer. complex: True if the policy is too complex. seconds: of CPU."""

    verdict: Verdict
    audience: frozenset[str]
    complex: bool
    seconds: float

    @property
    def text(self) -> str:
        return f"{self.verdict} {sorted(self.audience)[:5]} ({len(self.audience)})"


class Trial(NamedTuple):
    """The laws tried on one policy. broken: what the judge said against a law."""

    broken: list[str]
    complex: bool
    seconds: float


def judged(recipe: Recipe) -> Judged:
    case = recipe.case()
    begun = time.process_time()
    found = VerdictJudge(case.facts, case.trusted, versions=case.versions, now=_NOW).access(
        case.ref, case.acl, case.head
    )
    seconds = time.process_time() - begun
    too_complex = any(reason.code is ReasonCode.TOO_COMPLEX for reason in found.reasons)
    return Judged(found.verdict, frozenset(one.text for one in found.audience), too_complex, seconds)


def trial(seed: int, sizes: tuple[int, int] = LARGE) -> Trial:
    """Try all laws on the policy of a seed."""
    random = Random(f"laws {seed}")
    recipe = generate_large(seed, sizes)
    first = judged(recipe)
    if first.complex:
        return Trial([], True, first.seconds)
    return Trial(list(_broken(recipe, first, random)), False, first.seconds)


def _broken(recipe: Recipe, first: Judged, random: Random) -> Iterator[str]:
    for name, other in _equal(recipe, random):
        found = judged(other)
        if not found.complex and found[:2] != first[:2]:
            yield f"{name}: {first.text} became {found.text}"
    for name, other, wider in _ordered(recipe, random):
        # The block would hide more once a policy counts as public.
        before, after = (
            judged(replace(one, facts={**one.facts, "public_access_block": PublicAccessBlock()}))
            for one in (recipe, other)
        )
        if before.complex or after.complex or not {before.verdict, after.verdict} <= set(_WIDTH):
            continue
        narrow, wide = (before, after) if wider else (after, before)
        if _WIDTH.index(narrow.verdict) > _WIDTH.index(wide.verdict):
            yield f"{name}: {before.text} became {after.text}"


def _equal(recipe: Recipe, random: Random) -> Iterator[tuple[str, Recipe]]:
    """Yield changes of a policy that change nothing."""
    statements = recipe.statements or []
    padding = [
        _named(random, "Allow", ["s3:PutObject", "s3:ListBucket"], "arn:aws:s3:::bucket/*", IpAddress=_ip(random)),
        _named(random, "Deny", "s3:*", "arn:aws:s3:::bucket/nothing-of-this/*", StringEquals=_endpoint(random)),
        _named(random, "Allow", "s3:GetObject", "arn:aws:s3:::bucket/nothing-of-this/*"),
        _named(
            random, "Allow", "s3:GetObject", "arn:aws:s3:::bucket/nor/*", StringEquals={"aws:PrincipalOrgID": "o-pad"}
        ),
    ]
    yield "padding", replace(recipe, statements=[*padding[:2], *statements, *padding[2:]])
    yield "order", replace(recipe, statements=random.sample(statements, len(statements)))
    yield "Sids", replace(recipe, statements=[{"Sid": f"S{place}", **one} for place, one in enumerate(statements)])
    yield "twice", replace(recipe, statements=[*statements, *random.sample(statements, min(3, len(statements)))])


def _ordered(recipe: Recipe, random: Random) -> Iterator[tuple[str, Recipe, bool]]:
    """Yield changes that close nothing, with True, and changes that open nothing."""
    statements = recipe.statements or []
    everything = "arn:aws:s3:::bucket/*"
    for name, one in (
        ("allowed account", _named(random, "Allow", "s3:GetObject", everything)),
        (
            "allowed network",
            {**_named(random, "Allow", "s3:Get*", everything, IpAddress=_ip(random)), "Principal": "*"},
        ),
    ):
        yield name, replace(recipe, statements=[*statements, one]), True
    for name, one in (
        ("denied account", _named(random, "Deny", "s3:GetObject", everything)),
        (
            "denied elsewhere",
            {**_named(random, "Deny", "s3:*", everything, NotIpAddress=_ip(random)), "Principal": "*"},
        ),
    ):
        yield name, replace(recipe, statements=[*statements, one]), False


def _named(random: Random, effect: str, action: Any, resource: str, **condition: Any) -> dict[str, Any]:
    account = f"{random.randrange(10**11, 10**12)}"
    found = {"Effect": effect, "Principal": {"AWS": account}, "Action": action, "Resource": resource}
    return {**found, **({"Condition": condition} if condition else {})}


def _ip(random: Random) -> dict[str, str]:
    return {"aws:SourceIp": f"54.{random.randrange(256)}.{random.randrange(256)}.0/24"}


def _endpoint(random: Random) -> dict[str, str]:
    return {"aws:SourceVpce": f"vpce-{random.randrange(16**8):08x}"}
