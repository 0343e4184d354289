"""How far a verification came: its counts up to a key, and the objects that were left in mid-read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from auditor.verify.pipeline import Done
from auditor.verify.tally import VerifyTally

Unfinished = dict[tuple[str, str | None], Mapping[str, Any]]
"""Checkpoints of objects that were paused in mid-read, by key and version."""


@dataclass(slots=True)
class VerifyCheckpoint:
    """start_after: the last key that was come to; begun_after: where the range begins, None for its first key.

    as_of: the moment that decides what is due, in all hops. resumed: what the hop before left in mid-read; paused: what
    this one did.
    """

    as_of: datetime
    begun_after: str | None
    start_after: str | None
    tally: VerifyTally = field(default_factory=VerifyTally)
    resumed: Unfinished = field(default_factory=dict)
    paused: Unfinished = field(default_factory=dict)
    _before: tuple[VerifyTally, str | None] | None = None

    def move(self, done: Done, *, versions: bool) -> None:
        """One step further, in key order."""
        if versions and done.key != self.start_after:
            self._before = self.tally.copy(), self.start_after
        self.start_after = done.key
        self.tally.delete_markers += done.delete_markers
        if done.answer is not None:
            self.tally.add(done.answer)

    def to_dict(self) -> dict[str, Any]:
        """For the next hop; of a key whose versions are not all done nothing is counted."""
        tally, start_after = self.tally, self.start_after
        if self._before is not None and any(key == start_after for key, _ in self.paused):
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
        """Raises KeyError, TypeError or ValueError for what to_dict did not give."""
        if not all(isinstance(value[name], str | None) for name in ("begun_after", "start_after")):
            raise ValueError("start_after is no key")
        tally = VerifyTally.from_dict(value["tally"])
        tally.check()
        return cls(
            datetime.fromisoformat(value["as_of"]),
            value["begun_after"],
            value["start_after"],
            tally,
            {(one["key"], one["version_id"]): one["checkpoint"] for one in value["unfinished"]},
        )
