"""Laws of verdicts that need no second opinion, on large policies. A policy that is too complex obeys each of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import Any, Final, NamedTuple

from auditor.model.access import ReasonCode, Verdict
from auditor.model.bucket import PublicAccessBlock
from auditor.verdict.judge import VerdictJudge
from tests.verdict.oracle.large import LARGE, Statement, generate_large
from tests.verdict.oracle.recipe import Recipe
from tests.verdict.oracle.worlds import NOW

_NOW: Final = datetime.fromisoformat(NOW)
_ALL: Final = "arn:aws:s3:::bucket/*"
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
    whole, changes = recipe, _equal(random)
    for _, change in changes:
        whole = replace(whole, statements=change(whole.statements or []))
    # Alone, if all at once change something or are too complex.
    if (found := judged(whole)).complex or found[:2] != first[:2]:
        for name, change in changes:
            found = judged(replace(recipe, statements=change(recipe.statements or [])))
            if not found.complex and found[:2] != first[:2]:
                yield f"{name}: {first.text} became {found.text}"
    # The block would hide more once a policy counts as public.
    opened = replace(recipe, facts={**recipe.facts, "public_access_block": PublicAccessBlock()})
    before = first if "public_access_block" not in recipe.facts else judged(opened)
    if before.complex or before.verdict not in _WIDTH:
        return
    for name, statement, wider in _ordered(random):
        after = judged(replace(opened, statements=[*(recipe.statements or []), statement]))
        if after.complex or after.verdict not in _WIDTH:
            continue
        narrow, wide = (before, after) if wider else (after, before)
        if _WIDTH.index(narrow.verdict) > _WIDTH.index(wide.verdict):
            yield f"{name}: {before.text} became {after.text}"


def _equal(random: Random) -> list[tuple[str, Callable[[list[Statement]], list[Statement]]]]:
    """Return changes of a policy's statements that change nothing."""
    nothing = "arn:aws:s3:::bucket/nothing-of-this/*"
    padding = [
        _named(random, "Allow", ["s3:PutObject", "s3:ListBucket"], _ALL, IpAddress=_ip(random)),
        _named(random, "Deny", "s3:*", nothing, StringEquals=_endpoint(random)),
        _named(random, "Allow", "s3:GetObject", nothing),
        _named(
            random, "Allow", "s3:GetObject", "arn:aws:s3:::bucket/nor/*", StringEquals={"aws:PrincipalOrgID": "o-pad"}
        ),
    ]
    return [
        ("padding", lambda some: [*padding[:2], *some, *padding[2:]]),
        ("order", lambda some: random.sample(some, len(some))),
        ("Sids", lambda some: [{"Sid": f"S{place}", **one} for place, one in enumerate(some)]),
        ("twice", lambda some: [*some, *random.sample(some, min(3, len(some)))]),
    ]


def _ordered(random: Random) -> Iterator[tuple[str, Statement, bool]]:
    """Yield statements that close nothing, with True, and statements that open nothing."""
    allowed = {**_named(random, "Allow", "s3:Get*", _ALL, IpAddress=_ip(random)), "Principal": "*"}
    denied = {**_named(random, "Deny", "s3:*", _ALL, NotIpAddress=_ip(random)), "Principal": "*"}
    yield "allowed account", _named(random, "Allow", "s3:GetObject", _ALL), True
    yield "allowed network", allowed, True
    yield "denied account", _named(random, "Deny", "s3:GetObject", _ALL), False
    yield "denied elsewhere", denied, False


def _named(random: Random, effect: str, action: Any, resource: str, **condition: Any) -> Statement:
    account = f"{random.randrange(10**11, 10**12)}"
    found = {"Effect": effect, "Principal": {"AWS": account}, "Action": action, "Resource": resource}
    return {**found, **({"Condition": condition} if condition else {})}


def _ip(random: Random) -> dict[str, str]:
    return {"aws:SourceIp": f"54.{random.randrange(256)}.{random.randrange(256)}.0/24"}


def _endpoint(random: Random) -> dict[str, str]:
    return {"aws:SourceVpce": f"vpce-{random.randrange(16**8):08x}"}
