"""The checkpoint of a run: how far it came, saved in its run folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from auditor.model.finding import RuleUndecided
from auditor.model.json_codec import JsonError, Size
from auditor.model.object import ObjectVersion
from auditor.model.target import Target
from auditor.runs.documents import RunFile, load
from auditor.runs.paths import UNDIVIDED, checkpoint_name, run_path
from auditor.runs.stores.base import Store
from auditor.runs.tally import Tally


class RangeEnd(Struct, frozen=True, kw_only=True):
    """The note of a range of keys that it has ended."""

    lacks_acls: bool = False
    """True if the server has no ACLs of objects."""


class Checkpoint(RunFile, frozen=True, kw_only=True, omit_defaults=True):
    """The progress of a run, as its checkpoint file saves it.

    The parts with numbers below next_part have the lines of all objects up to the key start_after. The process that
    continues the run begins after this key, with the part next_part.
    """

    target: Target
    selection: Mapping[str, Any] = field(name="asked")
    """The run's questions about each object. A run with another selection may not continue this one: its counts
    would mix two audits."""
    rules_undecided: tuple[RuleUndecided, ...]
    """Rules that lacked a bucket fact at any time of the run."""
    next_part: Size
    start_after: str | None
    """The last object key in the parts; None if there is none yet."""
    hop: Size
    tally: Tally
    """The counts so far."""
    skipped_parts: tuple[Size, ...] = field(default=(), name="void")
    """Numbers below next_part whose parts are empty."""
    writer: str | None = None
    """The process that writes the run, in a store that has no locks; None if there is none."""
    rollups: Mapping[str, Any] = field(default_factory=dict)
    """The roll-ups so far, unchecked; missing if no object was audited."""
    unsent: tuple[ObjectVersion, ...] = ()
    """Objects of the parts that are not sent to the hashing queue yet. The next process sends them."""

    ended: RangeEnd | None = None
    """Set when a range of a divided run is complete: no process continues it. None for a run that is not divided."""

    @property
    def begun(self) -> bool:
        """True if the run has written lines into at least one part."""
        return self.next_part > len(self.skipped_parts)

    def check(self) -> None:
        if any(number >= self.next_part for number in self.skipped_parts):
            raise JsonError("has a part out of order", "void")
        self.tally.check()


def load_checkpoint(store: Store, bucket: str, run_id: str, range_id: str = UNDIVIDED) -> Checkpoint | None:
    """Return the run's checkpoint; None if the run has not written one. Raises RunDamaged.

    range_id: UNDIVIDED unless the run is divided into ranges of keys.
    """
    return load(store, f"{run_path(bucket, run_id)}/{checkpoint_name(range_id)}", Checkpoint, run_id)
