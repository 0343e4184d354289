"""Counts of results by prefix. If there are too many prefixes, the counts of the smallest are merged into the prefix
one level above.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct, field, to_builtins
from msgspec.structs import astuple

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.json_codec import Size, typed
from auditor.model.rollup import GroupKind, Sample

SHARE: Final = 100
"""A prefix with less than one SHARE-th of its subject has no group of its own."""
SAMPLES: Final = 5
"""Largest number of samples of a group."""
DEEPEST: Final = 8
"""Largest number of slashes in a group's prefix."""
LONGEST: Final = 300
"""Largest number of characters in a group's prefix or audience."""


class Subject(NamedTuple):
    """The findings or objects that one row of groups counts. Each field is that of Group."""

    kind: GroupKind
    rule: str | None
    verdict: Verdict | None
    severity: Severity | None
    audience: str | None


class PrefixCount(Struct):
    """The counts of one subject below one prefix. Each field is that of Group."""

    count: int = 0
    bytes: int = 0
    new: int | None = None
    excepted: int = 0
    since: str | None = None
    samples: list[Sample] = field(default_factory=list)

    def merge(self, other: PrefixCount) -> None:
        """Add the counts of a prefix below this one."""
        self.add(other.count, other.bytes, other.new, other.excepted, other.since)
        self.samples = sorted([*self.samples, *other.samples], key=_place)[:SAMPLES]

    def add(self, count: int, size: int, new: int | None, excepted: int, since: str | None) -> None:
        """Add counts without samples. size: in bytes."""
        self.count += count
        self.bytes += size
        self.excepted += excepted
        if new is not None:
            self.new = (self.new or 0) + new
        if since is not None and (self.since is None or since < self.since):
            self.since = since


Row = dict[str | None, PrefixCount]
"""The counts of one subject by prefix; None for findings on the bucket."""
Rows = dict[Subject, Row]


def each(rows: Mapping[Subject, Row]) -> Iterable[tuple[Subject, str | None, PrefixCount]]:
    return ((subject, prefix, count) for subject, row in rows.items() for prefix, count in row.items())


def prefix_of(key: str) -> str:
    """Return the prefix of a key up to its last "/", cut to DEEPEST slashes and LONGEST characters."""
    end = key.rfind("/", 0, LONGEST) + 1
    if key.count("/", 0, end) > DEEPEST:
        end = len("/".join(key.split("/", DEEPEST)[:DEEPEST])) + 1
    return key[:end]


def prefix_above(prefix: str) -> str:
    """Return the prefix one level above, "" at the top."""
    return prefix[: prefix.rfind("/", 0, len(prefix) - 1) + 1]


def merge_smallest(rows: Rows, number: int, spared: PrefixCount | None = None) -> int:
    """Merge the smallest prefixes into those above them until `number` are left, or only prefixes at the top. Return
    the number that is left. spared: counts that stay, because more keys of their prefix come next.
    """
    found = list(rows.values())
    left = sum(map(len, found))
    heap = [
        (count.count, -len(prefix), index, prefix)
        for index, row in enumerate(found)
        for prefix, count in row.items()
        if prefix and count is not spared
    ]
    heapq.heapify(heap)
    while left > number and heap:
        size, _, index, prefix = heapq.heappop(heap)
        row = found[index]
        count = row.get(prefix)
        if count is None or count.count != size:  # it was merged, or grew: the heap has its present size too
            continue
        left -= _merge_up(row, prefix)
        above = prefix_above(prefix)
        if above and row[above] is not spared:
            heapq.heappush(heap, (row[above].count, -len(above), index, above))
    return left


def merge_small(row: Row) -> None:
    """Merge each prefix that has too small a share of the row into the one above it, the deepest first."""
    total = sum(count.count for count in row.values())
    heap = [(-prefix.count("/"), prefix) for prefix in row if prefix]
    heapq.heapify(heap)
    while heap:
        prefix = heapq.heappop(heap)[1]
        if row[prefix].count * SHARE >= total:
            continue
        above = prefix_above(prefix)
        if not _merge_up(row, prefix) and above:
            heapq.heappush(heap, (-above.count("/"), above))


def _merge_up(row: Row, prefix: str) -> bool:
    """Move the counts of a prefix to the prefix one level above. Return True if that prefix had counts before."""
    count, above = row.pop(prefix), prefix_above(prefix)
    there = row.get(above)
    if there is None:
        row[above] = count
        return False
    there.merge(count)
    return True


def _place(sample: Sample) -> bytes:
    return (sample.key or "").encode("utf-8", "surrogatepass")


class SavedCount(Struct, frozen=True):
    """The counts of one subject below one prefix, as a checkpoint has them."""

    kind: GroupKind
    rule: str | None
    verdict: Verdict | None
    severity: Severity | None
    audience: str | None
    prefix: str | None
    count: Size
    bytes: Size
    new: Size | None
    excepted: Size
    since: str | None
    samples: list[Sample]


class _CountsSaved(Struct, frozen=True):
    counts: tuple[SavedCount, ...]


def saved_counts(rows: Mapping[Subject, Row]) -> list[dict[str, Any]]:
    """Return the counts as JSON values, each of a SavedCount."""
    found: list[dict[str, Any]] = to_builtins(
        [SavedCount(*subject, prefix, *astuple(one)) for subject, prefix, one in each(rows)]
    )
    return found


def restored_counts(saved: Mapping[str, Any]) -> Iterator[tuple[Subject, str | None, PrefixCount]]:
    """Yield the counts in the member `counts`, which saved_counts() made. Raises JsonError for anything else."""
    for one in typed(_CountsSaved, saved).counts:
        count = PrefixCount(one.count, one.bytes, one.new, one.excepted, one.since, one.samples)
        yield Subject(one.kind, one.rule, one.verdict, one.severity, one.audience), one.prefix, count
