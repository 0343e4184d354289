"""The file run.json of a run folder: its target, its ranges of keys, its configuration and the facts of its bucket.

It is written once the ranges are known, and stays as it is once a line is recorded. With it a run can be judged again
from its folder, without a request to the bucket.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from auditor.errors import UsageError
from auditor.model.bucket import BucketFacts
from auditor.model.json_codec import JsonError, Size
from auditor.model.object import Ask, Skipped
from auditor.model.target import Target
from auditor.model.version import VERSION
from auditor.runs.documents import FactFile, load
from auditor.runs.paths import range_name, run_path
from auditor.runs.seal import Link
from auditor.runs.stores.base import Store

NAME: Final = "run.json"
LISTING: Final = "listing"
"""The source of ranges that come from pages of the listing."""


class PlannedRange(Struct, frozen=True):
    """One range: the keys after start_after, up to and including stop_at; None: no limit.

    id: five digits from 00000 on, in key order. keys: the planned number of keys, or of versions; None if unknown.
    """

    id: str
    start_after: str | None
    stop_at: str | None
    keys: Size | None = None


class RunPlan(FactFile, frozen=True, kw_only=True):
    """The content of run.json."""

    LINED = "ranges"

    target: Target
    """The target of the whole run."""
    now: str
    """The time at which conditions with a date are judged: the begin of the run that read the facts, in ISO 8601."""
    ledger: bool
    """True if the run compares the objects with a ledger."""
    selected: tuple[str, ...]
    """IDs of the rules that the run selected, in the order in which it judges them."""
    configuration: Mapping[str, Any]
    """The settings that decide on verdicts and findings, in the form of auditor.toml."""
    selection: Mapping[str, Any]
    """The run's questions about each object. A process with another selection may not continue the run: its counts
    would mix two audits."""
    facts: BucketFacts
    """The facts of the bucket by which all objects are judged. The policies of KMS keys are in files of their own."""
    ask: Ask
    """The calls that the run makes for each object, or why it makes none."""
    auditor: str = VERSION
    """The version of the auditor that judges."""
    judged_from: Link | None = None
    """The run whose facts these are; None if this run read them itself."""
    filled: Link | None = None
    """The run that this one fills: its lines are this run's, but for the facts that it could not read; None if this run
    lists the objects itself.
    """
    against: str | None = None
    """ID of the last complete run of the target, with which this run compares; None if there is none."""
    source: str | None = None
    """ID of the run whose parts gave the ranges, or LISTING; None for a run of one range, which needs no planning."""
    exact: bool = False
    """True if the planned numbers of keys were exact when the plan was made."""
    calls: Size = 0
    """Number of calls that listed keys for the plan, retries included."""
    ranges: tuple[PlannedRange, ...]

    @property
    def keys(self) -> int | None:
        """The planned number of keys of all ranges; None if it is unknown."""
        known = [one.keys for one in self.ranges if one.keys is not None]
        return sum(known) if len(known) == len(self.ranges) else None

    @property
    def divided(self) -> bool:
        """True if the run has several ranges."""
        return len(self.ranges) > 1

    @property
    def reads_keys(self) -> bool:
        """True if the run reads the policies of its objects' KMS keys."""
        return not isinstance(self.facts.key_policies, Skipped)

    def range(self, range_id: str) -> PlannedRange:
        """Return the range with this ID. Raises UsageError if there is none."""
        found = next((one for one in self.ranges if one.id == range_id), None)
        if found is None:
            last = self.ranges[-1].id
            raise UsageError(f"run {self.run} has no range {range_id[:100]!r}: give {self.ranges[0].id} to {last}")
        return found

    def target_of(self, one: PlannedRange) -> Target:
        """Return the target of a range: the run's, with the range's own limits."""
        return replace(self.target, start_after=one.start_after, stop_at=one.stop_at)

    def faults(self) -> Iterator[str]:
        """Yield a sentence for each place at which the ranges are not the whole target, each key in one range."""
        before, at = self.target.start_after, "the target's first key"
        for number, one in enumerate(self.ranges):
            if one.id != range_name(number):
                yield f"range {one.id} is in the place of range {range_name(number)}"
            if one.start_after != before:
                yield f"range {one.id} does not begin at the end of {at}"
            if one.start_after is not None and one.stop_at is not None and one.stop_at <= one.start_after:
                yield f"range {one.id} ends before it begins"
            before, at = one.stop_at, f"range {one.id}"
        if not self.ranges or before != self.target.stop_at:
            yield "the last range does not end at the target's end"

    def check(self) -> None:
        # A run of one range takes the target as it is, even one whose limits have no key between them.
        if fault := next(self.faults(), None) if len(self.ranges) != 1 else next(self._other_limits(), None):
            raise JsonError(f"is not whole: {fault}", "ranges")

    def _other_limits(self) -> Iterator[str]:
        one = self.ranges[0]
        if self.target_of(one) != self.target or one.id != range_name(0):
            yield f"range {one.id} is not the target"

    def _members(self) -> dict[str, Any]:
        # A date in auditor.toml becomes text.
        plain = {name: to_builtins(getattr(self, name), enc_hook=dict) for name in ("configuration", "selection")}
        return {**super()._members(), **plain}


def one_range(target: Target) -> tuple[PlannedRange, ...]:
    """Return the ranges of a run that is not divided."""
    return (PlannedRange(range_name(0), target.start_after, target.stop_at),)


def load_plan(store: Store, bucket: str, run_id: str) -> RunPlan | None:
    """Return the plan of a run; None if it has none. Raises RunDamaged if run.json is damaged. Blocks."""
    return load(store, f"{run_path(bucket, run_id)}/{NAME}", RunPlan, run_id)
