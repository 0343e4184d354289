"""The checkpoint of a range: how far it came, saved in the run folder until the run is complete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from auditor.model.json_codec import JsonError, Size
from auditor.model.object import ObjectVersion
from auditor.runs.paths import checkpoint_name, run_path
from auditor.runs.run_files import RunFile, load
from auditor.runs.stores.base import Store
from auditor.runs.tally import Tally


class RangeEnd(Struct, frozen=True, kw_only=True):
    """The note of a range of keys that it has ended."""

    lacks_acls: bool = False
    """True if the server has no ACLs of objects."""


class Checkpoint(RunFile, frozen=True, kw_only=True, omit_defaults=True):
    """The progress of a range of a run.

    The parts with numbers below next_part have the lines of all objects up to the key start_after. The process that
    continues the range begins after this key, with the part next_part.
    """

    next_part: Size
    start_after: str | None
    """The last object key in the parts; None if there is none yet."""
    tally: Tally
    """The counts so far."""
    skipped_parts: tuple[Size, ...] = field(default=(), name="void")
    """Numbers below next_part whose parts are empty."""
    writer: str | None = None
    """The process that writes the range, in a store that has no locks; None if there is none."""
    rollups: Mapping[str, Any] = field(default_factory=dict)
    """The roll-ups so far, unchecked; missing if no object was audited."""
    unsent: tuple[ObjectVersion, ...] = ()
    """Objects of the parts that are not sent to the hashing queue yet. The next process sends them."""

    ended: RangeEnd | None = None
    """Set when the range is complete: no process continues it."""

    @property
    def begun(self) -> bool:
        """True if a process has written lines of the range into at least one part."""
        return self.next_part > len(self.skipped_parts)

    def check(self) -> None:
        if any(number >= self.next_part for number in self.skipped_parts):
            raise JsonError("has a part out of order", "void")
        self.tally.check()


def load_checkpoint(store: Store, bucket: str, run_id: str, range_id: str) -> Checkpoint | None:
    """Return the checkpoint of a range; None if the range has not begun. Raises RunDamaged. Blocks."""
    return load(store, f"{run_path(bucket, run_id)}/{checkpoint_name(range_id)}", Checkpoint, run_id)
