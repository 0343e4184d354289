"""Compare the judge's answer with the oracle's, case by case: `python -m tests.verdict.oracle.compare FIRST LAST`.

The command prints a line for each case that differs, and the counts; it fails if there is one, or if too many are too
complex. With `--processes 2` it compares in two processes. `--cases large` has policies of 1 to 4 kB, and `--cases
laws` tries laws on those of 8 to 20 kB. With `--show` it prints the case of the seed FIRST, shrunk, as a Python
expression.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

from auditor.model.access import ObjectAccess, ReasonCode, Verdict
from auditor.verdict.judge import VerdictJudge
from tests.verdict.oracle.generator import generate
from tests.verdict.oracle.large import generate_large
from tests.verdict.oracle.laws import trial
from tests.verdict.oracle.recipe import Recipe, shrunk
from tests.verdict.oracle.verdict import judge
from tests.verdict.oracle.worlds import NOW, Case

_NOW: Final = datetime.fromisoformat(NOW)
_PART: Final = 50
"""Number of seeds that a process compares at a time."""


def difference(recipe: Recipe) -> str | None:
    """Return what judge and oracle say of the case, None if they say the same, or if the policy is too complex."""
    return compared(recipe)[0]


def compared(recipe: Recipe) -> tuple[str | None, bool]:
    """Return the difference, and True if the policy is too complex to judge."""
    case = recipe.case()
    judging = VerdictJudge(case.facts, case.trusted, versions=case.versions, now=_NOW)
    found = judging.access(case.ref, case.acl, case.head)
    if any(reason.code is ReasonCode.TOO_COMPLEX for reason in found.reasons):
        return None, True
    return _differing(case, found), False


def _differing(case: Case, found: ObjectAccess) -> str | None:
    expected = judge(case)
    audience = frozenset(one.text for one in found.audience)
    said = f"judge: {found.verdict} {sorted(audience)}, oracle: {expected.verdict} {sorted(expected.audience)}"
    if found.verdict is not expected.verdict:
        return f"verdict: {said}"
    if found.verdict is not Verdict.UNKNOWN and audience != expected.audience:
        return f"audience: {said}"
    return None


def explained(recipe: Recipe) -> str | None:
    """Return the difference and the smallest case that shows it, None if judge and oracle say the same."""
    found = difference(recipe)
    if found is None:
        return None
    least = shrunk(recipe, partial(_differs, kind=found.partition(":")[0]))
    return f"{difference(least)}\n\n{least.text}"


class Cases(NamedTuple):
    """Some cases of one kind. check: returns what is wrong with the case of a seed, if anything, and True if its policy
    is too complex. most: the largest share of cases that may be, in percent.
    """

    check: Callable[[int], tuple[str | None, bool]]
    most: int


def _laws(seed: int) -> tuple[str | None, bool]:
    found = trial(seed)
    slow = [f"slow: {found.seconds:.1f} s of CPU"] if found.seconds > MOST_SECONDS else []
    return next(iter([*found.broken, *slow]), None), found.complex


CASES: Final = {
    "usual": Cases(lambda seed: compared(generate(seed)), 0),
    "large": Cases(lambda seed: compared(generate_large(seed)), 1),
    "laws": Cases(_laws, 5),
}
"""The kinds of cases: those of a few statements; policies of 1 to 4 kB; and policies of 8 to 20 kB, on which the laws
are tried that need no oracle."""
MOST_SECONDS: Final = 2.0
"""Largest number of seconds of CPU to judge one policy."""


def differences(kind: str, seeds: Sequence[int]) -> list[tuple[int, str | None, bool]]:
    """Return for each case its seed, what is wrong with it, if anything, and True if its policy is too complex."""
    return [(seed, *CASES[kind].check(seed)) for seed in seeds]


def _in_parts(kind: str, seeds: range, processes: int) -> Iterator[tuple[int, str | None, bool]]:
    parts = [seeds[begin : begin + _PART] for begin in range(0, len(seeds), _PART)]
    if processes == 1:
        for part in parts:
            yield from differences(kind, part)
        return
    with ProcessPoolExecutor(processes) as pool:
        for found in pool.map(partial(differences, kind), parts):
            yield from found


def _differs(recipe: Recipe, kind: str) -> bool:
    return (difference(recipe) or "").startswith(kind)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the judge with the oracle on random cases.")
    parser.add_argument("first", type=int, help="the first seed")
    parser.add_argument("last", type=int, nargs="?", help="the seed after the last one")
    parser.add_argument("--processes", type=int, default=1, help="the number of processes that compare")
    parser.add_argument("--cases", choices=CASES, default="usual", help="the kind of cases")
    parser.add_argument("--show", action="store_true", help="print the case of the first seed, shrunk")
    asked = parser.parse_args()
    if asked.show:
        recipe = generate_large(asked.first) if asked.cases == "large" else generate(asked.first)
        print(explained(recipe) or "equal")
        return 0
    seeds = range(asked.first, asked.last or asked.first + 1)
    counts: Counter[str] = Counter()
    too_complex = 0
    for seed, found, is_complex in _in_parts(asked.cases, seeds, asked.processes):
        too_complex += is_complex
        if found is not None:
            counts[found.partition(":")[0]] += 1
            print(f"{seed} {found}", flush=True)
    differing = sum(counts.values())
    equal = len(seeds) - differing - too_complex
    print(f"{equal:,} of {len(seeds):,} equal, {too_complex:,} too complex; differing: {dict(counts)}")
    return int(differing > 0 or too_complex * 100 > CASES[asked.cases].most * len(seeds))


if __name__ == "__main__":
    raise SystemExit(main())
