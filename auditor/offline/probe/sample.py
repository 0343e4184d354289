"""Choose the objects that a probe asks about: a sample of each group of the roll-ups, by one pass over the lines."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import Final

from auditor.model.access import ObjectAccess, Verdict, known_audiences
from auditor.model.object import Outcome
from auditor.model.rollup import Group
from auditor.model.run_lines import ObjectLine, first_prefix
from auditor.reports.prefix_counts import prefix_above, prefix_of
from auditor.reports.rollup import OTHERS, widest_audience

SAMPLE: Final = 20
"""Number of objects of a group that are asked about."""
MOST: Final = 500
"""Largest number of objects that are asked about."""
PRIVATE_GROUPS: Final = 100
"""Number of groups of private objects, which the roll-ups leave out: one for each first folder of their keys. The
objects of further folders share one group."""

GroupName = tuple[str, str | None, str | None]
"""The verdict of a group's objects, their widest audience and their prefix."""

Ranked = tuple[int, int, ObjectLine]
"""A line with its rank in the sample, negative so that a heap has the worst first, and its place in the run."""


class Sampler:
    """Takes the lines of a run, and keeps a sample of each group. Memory does not grow with the run.

    The sample of a group are the objects whose names, with the run's ID, have the smallest digests: every object has
    the same chance, and the same run gives the same sample. groups: those of the roll-ups.
    """

    def __init__(self, run_id: str, groups: Iterable[Group], sample: int) -> None:
        self._run_id = run_id
        self._sample = sample
        self._named: dict[GroupName, list[Ranked]] = {
            (group.verdict.value, group.audience, group.prefix): [] for group in groups if group.verdict is not None
        }
        self._private: dict[GroupName, list[Ranked]] = {}
        self._seen = 0

    def add(self, line: ObjectLine) -> None:
        """Take one line. An object that was gone has no verdict and is left out."""
        if line.outcome is Outcome.VANISHED or line.verdict is None:
            return
        self._seen += 1
        kept, rank = self._group_of(line, line.verdict), -self._digest(line)
        entry = (rank, -self._seen, line)
        if len(kept) < self._sample:
            heapq.heappush(kept, entry)
        elif kept and rank > kept[0][0]:
            heapq.heapreplace(kept, entry)

    def _digest(self, line: ObjectLine) -> int:
        name = f"{self._run_id}\0{line.key}\0{line.version_id or ''}"
        return int.from_bytes(sha256(name.encode(errors="surrogatepass")).digest()[:8])

    def _group_of(self, line: ObjectLine, verdict: Verdict) -> list[Ranked]:
        if verdict is not Verdict.PRIVATE:
            audience = widest_audience(ObjectAccess(verdict, tuple(known_audiences(line.audience))))
            for party in (audience, OTHERS):
                for prefix in _prefixes(line.key):
                    if (found := self._named.get((verdict.value, party, prefix))) is not None:
                        return found
        name: GroupName = (verdict.value, None, first_prefix(line.key))
        if name not in self._private and len(self._private) >= PRIVATE_GROUPS:
            name = (verdict.value, None, None)
        return self._private.setdefault(name, [])

    def chosen(self, most: int) -> list[ObjectLine]:
        """Return the sample, at most so many objects. Each group gives its first object, then each its second: the
        worst group comes first.
        """
        groups = [sorted(one, reverse=True) for one in (*self._named.values(), *self._private.values())]
        rounds = (
            group[place] for place in range(max(map(len, groups), default=0)) for group in groups if place < len(group)
        )
        return [line for _, (_, _, line) in zip(range(most), rounds, strict=False)]

    @property
    def groups(self) -> int:
        """Number of groups that have an object."""
        return sum(1 for one in (*self._named.values(), *self._private.values()) if one)


def sampled(sampler: Sampler, lines: Iterable[ObjectLine], stopped: Callable[[], bool]) -> bool:
    """Give all lines to the sampler. Return False if the work was stopped before the last line. Blocks."""
    for line in lines:
        if stopped():
            return False
        sampler.add(line)
    return True


def _prefixes(key: str) -> Iterator[str]:
    """Yield the prefixes that a group of this key may have, the longest first."""
    prefix = prefix_of(key)
    while prefix:
        yield prefix
        prefix = prefix_above(prefix)
    yield ""
