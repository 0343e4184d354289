"""The file plan.json of a run that is divided into ranges of keys: what each range has to audit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.errors import UsageError
from auditor.model.json_codec import JsonError, Size
from auditor.model.target import Target
from auditor.runs.documents import RunFile, load
from auditor.runs.paths import run_path
from auditor.runs.stores.base import Store

NAME: Final = "plan.json"
LISTING: Final = "listing"
"""The source of ranges that come from pages of the listing."""


class PlannedRange(Struct, frozen=True):
    """One range: the keys after start_after, up to and including stop_at; None: no limit.

    id: five digits from 00001 on, in key order. keys: the planned number of keys, or of versions.
    """

    id: str
    start_after: str | None
    stop_at: str | None
    keys: Size


class PlanFile(RunFile, frozen=True, kw_only=True):
    """The content of plan.json."""

    LINED = "ranges"

    target: Target
    """The target of the whole run."""
    source: str
    """ID of the run whose parts gave the ranges, or LISTING."""
    exact: bool
    """True if the planned numbers of keys were exact when the plan was made."""
    calls: Size = 0
    """Number of calls that listed keys for the plan, retries included."""
    ranges: tuple[PlannedRange, ...]

    @property
    def keys(self) -> int:
        """The planned number of keys of all ranges."""
        return sum(one.keys for one in self.ranges)

    def range(self, range_id: str) -> PlannedRange:
        """Return the range with this ID. Raises UsageError if there is none."""
        found = next((one for one in self.ranges if one.id == range_id), None)
        if found is None:
            raise UsageError(f"run {self.run} has no range {range_id[:100]!r}: give {self.ranges[0].id} to {self.last}")
        return found

    @property
    def last(self) -> str:
        """ID of the last range."""
        return self.ranges[-1].id

    def target_of(self, one: PlannedRange) -> Target:
        """Return the target of a range: the run's, with the range's own limits."""
        return replace(self.target, start_after=one.start_after, stop_at=one.stop_at)

    def faults(self) -> Iterator[str]:
        """Yield a sentence for each place at which the ranges are not the whole target, each key in one range."""
        before, at = self.target.start_after, "the target's first key"
        for number, one in enumerate(self.ranges, 1):
            if one.id != numbered(number):
                yield f"range {one.id} is in the place of range {numbered(number)}"
            if one.start_after != before:
                yield f"range {one.id} does not begin at the end of {at}"
            if one.start_after is not None and one.stop_at is not None and one.stop_at <= one.start_after:
                yield f"range {one.id} ends before it begins"
            before, at = one.stop_at, f"range {one.id}"
        if not self.ranges or before != self.target.stop_at:
            yield "the last range does not end at the target's end"

    def check(self) -> None:
        if fault := next(self.faults(), None):
            raise JsonError(f"is not whole: {fault}", "ranges")


def numbered(number: int) -> str:
    """Return the ID of a range. number: its place, from 1 on."""
    return f"{number:05}"


def load_plan(store: Store, bucket: str, run_id: str) -> PlanFile | None:
    """Return the plan of a run; None if the run is not divided. Raises RunDamaged if plan.json is damaged. Blocks."""
    return load(store, f"{run_path(bucket, run_id)}/{NAME}", PlanFile, run_id)
