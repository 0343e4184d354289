"""The checkpoint of a verification: its counts up to an object key, and the objects that are partly read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Self

from auditor.model.dates import iso_date
from auditor.model.json_text import items, typed
from auditor.verify.pipeline import Done
from auditor.verify.tally import VerifyTally

Unfinished = dict[tuple[str, str | None], Mapping[str, Any]]
"""Object checkpoints of objects that are read in part, by object key and version ID."""


@dataclass(frozen=True, slots=True)
class UnfinishedObject:
    """An object that was read only in part. checkpoint: of its hashing; not checked yet."""

    key: str
    version_id: str | None
    checkpoint: Mapping[str, Any]


@dataclass(slots=True)
class VerifyCheckpoint:
    """The state of a verification, from which the next invocation of the Lambda function (hop) continues."""

    as_of: datetime
    """Time at which the verification began. All hops decide by this time which objects are due."""
    begun_after: str | None
    """The start of the target's key range, exclusive."""
    start_after: str | None
    """The last key that is counted in `tally`; at first `begun_after`."""
    tally: VerifyTally = field(default_factory=VerifyTally)
    resumed: Unfinished = field(default_factory=dict)
    """Objects that the previous hop read in part."""
    paused: Unfinished = field(default_factory=dict)
    """Objects that this hop read in part."""
    cut: bool = False
    """True if a stop cut off this hop, perhaps between two versions of its last key."""
    _before: tuple[VerifyTally, str | None] | None = None
    """`tally` and `start_after` before the last key; None unless the run is over versions."""

    def move(self, done: Done, *, versions: bool, accepted: bool = False) -> None:
        """Count the result of the next object. Results come in key order. versions: True if a key can have several
        results. accepted: True if auditor.toml accepts that it was not read.
        """
        if versions and done.key != self.start_after:
            self._before = self.tally.copy(), self.start_after
        self.start_after = done.key
        self.tally.delete_markers += done.delete_markers
        if done.answer is not None:
            self.tally.add(done.answer, done.late, accepted=accepted)

    def to_dict(self) -> dict[str, Any]:
        """Return the checkpoint as a JSON object, without the last key's counts if a version of it was not read."""
        tally, start_after = self.tally, self.start_after
        if self._before is not None and (self.cut or any(key == start_after for key, _ in self.paused)):
            tally, start_after = self._before
        return {
            "as_of": self.as_of.isoformat(),
            "begun_after": self.begun_after,
            "tally": tally.to_dict(),
            "start_after": start_after,
            "unfinished": [
                {"key": key, "version_id": version_id, "checkpoint": checkpoint}
                for (key, version_id), checkpoint in self.paused.items()
            ],
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """Read a JSON object of to_dict(). Raises KeyError, TypeError or ValueError for any other value."""
        if not all(isinstance(value[name], str | None) for name in ("begun_after", "start_after")):
            raise ValueError("start_after is no key")
        tally = VerifyTally.from_dict(value["tally"])
        tally.check()
        unfinished = items(value["unfinished"], partial(typed, UnfinishedObject))
        return cls(
            iso_date(value["as_of"]),
            value["begun_after"],
            value["start_after"],
            tally,
            {(one.key, one.version_id): one.checkpoint for one in unfinished},
        )
