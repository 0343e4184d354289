"""Plan ranges of keys for a target.

The ranges come from the parts of the target's last run, without a call. If there are none, the bucket is listed, by at
most 160 calls and 128 for each range. As long as these seem to suffice, all keys are read, and the ranges are exact.
Otherwise the piece with the most unseen keys is bisected, between the last key seen in it and the next one, and the
numbers of keys are estimates. Either way the ranges together are the whole target, and no key is in two of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.audit.key_cuts import AT_ONCE, PAGE, Cut, KeyCuts, KeysFound, find_cuts, increasing
from auditor.config.resources import open_bucket
from auditor.config.settings import Settings
from auditor.errors import OutputError, UsageError
from auditor.model.target import Target
from auditor.runs.parts import Part, keys_at
from auditor.runs.reading import RunReader, read_seal
from auditor.runs.seal import SealedPart
from auditor.s3.calls import Caller
from auditor.s3.engines.base import Engine, ListQuery, Position
from auditor.s3.listing import listed_page
from auditor.s3.rate import RateLimit

_NEAR: Final = 16
"""A cut may be off by one part in so many of a range, where a part of the last run ends: no line is then read."""
MOST: Final = 10_000
"""Largest number of ranges, which is also that of the parallel children of a Distributed Map of Step Functions."""


class KeyRange(Struct, frozen=True):
    """The keys after start_after, up to and including stop_at; None: no limit. keys: number of keys, or of object
    versions if the target is of all versions.
    """

    start_after: str | None
    stop_at: str | None
    keys: int


class RangePlan(Struct, frozen=True):
    """Ranges that together are the whole of a target, and of which no two have a key in common."""

    target: Target
    ranges: tuple[KeyRange, ...]
    run: str | None
    """ID of the run whose parts the ranges come from; None if the bucket was listed."""
    exact: bool
    """True if the numbers of keys are exact: at the time of the run, or of the listing."""
    calls: int
    """Number of calls that listed keys, retries included."""

    @property
    def keys(self) -> int:
        return sum(one.keys for one in self.ranges)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as the JSON value that `auditor plan --format json` prints."""
        target = {"bucket": self.target.bucket, "prefix": self.target.prefix, "versions": self.target.versions}
        ranges = [{"start_after": one.start_after, "stop_at": one.stop_at, "keys": one.keys} for one in self.ranges]
        found = {"run": self.run, "exact": self.exact, "keys": self.keys, "calls": {"list": self.calls}}
        return {"target": target, **found, "ranges": ranges}


def check_number(ranges: int) -> None:
    """Raise UsageError unless a target may be cut into so many ranges."""
    if not 1 <= ranges <= MOST:
        raise UsageError(f"--ranges {ranges} is not valid: give a number from 1 to {MOST:,}")


def plan_from_run(target: Target, run: RunReader, ranges: int) -> RangePlan | None:
    """Plan the ranges of a whole target by the parts of its last complete run. Blocks.

    Return None if the run has no parts.json, no object or no readable part. At most one part is read for each range,
    and none where a part ends near to the range's end.
    """
    seal = read_seal(run.store, run.path)
    parts = sorted(_Objects.of(seal.parts)) if seal is not None else []
    total = sum(one.lines for one in parts)
    if not total:
        return None
    try:
        cuts = tuple(increasing(_cuts_in(run, parts, total, ranges)))
    except OutputError:
        return None
    return _planned(target, KeyCuts(cuts, total, True), run.run_id, 0)


async def plan_by_listing(
    target: Target,
    settings: Settings,
    ranges: int,
    progress: Callable[[float], None] = lambda keys: None,
    *,
    most: int | None = None,
    rate: RateLimit | None = None,
) -> RangePlan:
    """Plan the ranges of a target by listing pages of it.

    progress: called with the estimated number of keys so far. most: largest number of calls; None: as many as a plan
    may take. rate: the limit of calls per second; None for one by the settings.

    Raises BucketError if the bucket cannot be listed, or the first call fails. If later calls fail, or
    `most` are spent, the keys that are known decide.
    """
    settings = replace(settings, max_calls=most)
    async with open_bucket(target.bucket, settings, concurrency=AT_ONCE, connections=AT_ONCE, rate=rate) as bucket:
        listing = TargetKeys(bucket.engine, bucket.caller, target)
        cuts = await find_cuts(listing, ranges, target.start_after, target.stop_at, most=most, progress=progress)
        exact = cuts.exact and not target.versions  # a key may have more versions than a page has room for
        return _planned(target, replace(cuts, exact=exact), None, bucket.caller.counts["list"])


class TargetKeys:
    """Lists keys of a target from any text on."""

    def __init__(self, engine: Engine, caller: Caller, target: Target) -> None:
        self._engine = engine
        self._caller = caller
        self._target = target

    async def __call__(self, after: str | None, count: int) -> KeysFound:
        """Return at most one page of keys, of which none is missing: only the last page may have none."""
        query = ListQuery(self._target.prefix, after, self._target.versions, min(count, PAGE))
        position: Position | None = None
        while True:
            page = await listed_page(self._engine, self._caller, self._target, query, position)
            listed = sorted([*(ref.key for ref in page.refs), *page.delete_markers])
            keys = [key for key in listed if after is None or key > after]
            if keys or page.next is None or page.next == position:
                return KeysFound(keys, page.next is not None)
            position = page.next


def _planned(target: Target, found: KeyCuts, run: str | None, calls: int) -> RangePlan:
    ends = [(target.start_after, 0), *found.cuts, (target.stop_at, found.keys)]
    ranges = tuple(KeyRange(start, stop, max(upto - before, 0)) for (start, before), (stop, upto) in pairwise(ends))
    return RangePlan(target, ranges, run, found.exact, calls)


class _Objects(Struct, frozen=True, order=True):
    """A file of objects of the last run. last: key of its last line; "" if the seal does not name it."""

    part: Part
    lines: int
    last: str

    @classmethod
    def of(cls, sealed: Iterable[SealedPart]) -> Iterator[_Objects]:
        for one in sealed:
            part = Part.parse(one.path)
            if part is not None and part.kind == "objects":
                yield cls(part, one.lines, one.last or "")


def _cuts_in(run: RunReader, parts: Sequence[_Objects], total: int, ranges: int) -> Iterator[Cut]:
    """Yield the key of the line at the end of each range but the last, or of a line near to it at the end of a part."""
    wanted = deque(sorted({max(1, total * number // ranges) for number in range(1, ranges)}))
    near, done = total // (ranges * _NEAR), 0
    for one in parts:
        end, lines = done + one.lines, list[int]()
        while wanted and wanted[0] <= end + near * bool(one.last):
            lines.append(wanted.popleft())
        at_end = bool(lines) and bool(one.last) and lines[-1] >= end - near
        inside = [line - done for line in (lines[:-1] if at_end else lines)]
        if inside:
            keys = keys_at(run.store, run.path, one.part, inside)
            yield from ((key, done + line) for line, key in zip(inside, keys, strict=True))
        if at_end:
            yield one.last, end
        done = end
