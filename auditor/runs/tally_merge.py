"""Add up the tallies of the ranges of a run."""

from __future__ import annotations

from typing import Final

from auditor.model.access import Verdict
from auditor.runs.tally import AUDIENCES, OTHER, OTHER_CODE, OTHERS, REASONS, Tally

_BOUNDED: Final = ("audiences", "failed", "failed_accepted", "unread")
"""The fields that count a limited number of names separately."""


def add_tally(total: Tally, other: Tally) -> None:
    """Add the counts of a range to `total`, which has the counts of the ranges before it.

    Names beyond the limits of a tally count as the others, as they do in a run that is not divided.
    """
    for name in (name for name in Tally.__struct_fields__ if name not in _BOUNDED):
        mine, theirs = getattr(total, name), getattr(other, name)
        if name == "uncompared":
            total.uncompared = max(mine, theirs)
        elif name == "oldest":
            total.oldest |= {fact: min(at, mine.get(fact, at)) for fact, at in theirs.items()}
        elif isinstance(mine, int):
            setattr(total, name, mine + theirs)
        else:
            for key, number in theirs.items():
                mine[key] = mine.get(key, 0) + number
    _add_bounded(total.unread, other.unread, OTHER)
    _add_bounded(total.failed, other.failed, OTHER_CODE)
    _add_bounded(total.failed_accepted, other.failed_accepted, OTHER_CODE)
    _add_audiences(total.audiences, other.audiences)


def _add_bounded(total: dict[str, int], other: dict[str, int], rest: str) -> None:
    for name, number in other.items():
        known = name if name in total or len(total) < REASONS else rest
        total[known] = total.get(known, 0) + number


def _add_audiences(total: dict[str, int], other: dict[str, int]) -> None:
    room = {verdict.value: AUDIENCES - _named(total, verdict) for verdict in Verdict}
    for name, number in other.items():
        verdict = name.partition(" ")[0]
        known = name
        if name not in total:
            if room[verdict] > 0:
                room[verdict] -= 1
            else:
                known = f"{verdict} {OTHERS}"
        total[known] = total.get(known, 0) + number


def _named(counts: dict[str, int], verdict: Verdict) -> int:
    return sum(name.startswith(f"{verdict.value} ") for name in counts)
