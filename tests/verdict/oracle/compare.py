"""Compare the judge's answer with the oracle's, case by case: `python -m tests.verdict.oracle.compare FIRST LAST`.

The command prints a line for each case that differs, and the counts; it fails if there is one. With `--processes 2` it
compares in two processes. With `--show` it prints the case of the seed FIRST, shrunk, as a Python expression.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from functools import partial
from typing import Final

from auditor.model.access import Verdict
from auditor.verdict.judge import VerdictJudge
from tests.verdict.oracle.generator import generate
from tests.verdict.oracle.recipe import Recipe, shrunk
from tests.verdict.oracle.verdict import judge
from tests.verdict.oracle.worlds import NOW

_NOW: Final = datetime.fromisoformat(NOW)
_PART: Final = 500
"""Number of seeds that a process compares at a time."""


def difference(recipe: Recipe) -> str | None:
    """Return what judge and oracle say of the case, None if they say the same."""
    case = recipe.case()
    engine = VerdictJudge(case.facts, case.trusted, versions=case.versions, now=_NOW)
    found = engine.access(case.ref, case.acl, case.head)
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


def differences(seeds: Sequence[int]) -> list[tuple[int, str]]:
    """Return what judge and oracle say of the cases that differ, each with its seed."""
    found = ((seed, difference(generate(seed))) for seed in seeds)
    return [(seed, text) for seed, text in found if text is not None]


def _in_parts(seeds: range, processes: int) -> Iterator[tuple[int, str]]:
    parts = [seeds[begin : begin + _PART] for begin in range(0, len(seeds), _PART)]
    if processes == 1:
        for part in parts:
            yield from differences(part)
        return
    with ProcessPoolExecutor(processes) as pool:
        for found in pool.map(differences, parts):
            yield from found


def _differs(recipe: Recipe, kind: str) -> bool:
    return (difference(recipe) or "").startswith(kind)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the judge with the oracle on random cases.")
    parser.add_argument("first", type=int, help="the first seed")
    parser.add_argument("last", type=int, nargs="?", help="the seed after the last one")
    parser.add_argument("--processes", type=int, default=1, help="the number of processes that compare")
    parser.add_argument("--show", action="store_true", help="print the case of the first seed, shrunk")
    asked = parser.parse_args()
    if asked.show:
        print(explained(generate(asked.first)) or "equal")
        return 0
    seeds = range(asked.first, asked.last or asked.first + 1)
    counts: Counter[str] = Counter()
    for seed, found in _in_parts(seeds, asked.processes):
        counts[found.partition(":")[0]] += 1
        print(f"{seed} {found}", flush=True)
    differing = sum(counts.values())
    print(f"{len(seeds) - differing:,} of {len(seeds):,} equal; differing: {dict(counts)}")
    return int(differing > 0)


if __name__ == "__main__":
    raise SystemExit(main())
