"""The checkpoint of a verification: its counts up to a key, and the objects that are partly read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from auditor.verify.pipeline import Done
from auditor.verify.tally import VerifyTally

Unfinished = dict[tuple[str, str | None], Mapping[str, Any]]
"""Object checkpoints of partly read objects, by key and version."""


@dataclass(slots=True)
class VerifyCheckpoint:
    """start_after: the last key that has an outcome. begun_after: the range's own start_after.

    as_of: the time that decides which objects are due, the same in all hops. resumed: objects that the hop before read
    in part; paused: objects that this hop did.
    """

    as_of: datetime
    begun_after: str | None
    start_after: str | None
    tally: VerifyTally = field(default_factory=VerifyTally)
    resumed: Unfinished = field(default_factory=dict)
    paused: Unfinished = field(default_factory=dict)
    _before: tuple[VerifyTally, str | None] | None = None

    def move(self, done: Done, *, versions: bool) -> None:
        """Count one step; steps come in key order."""
        if versions and done.key != self.start_after:
            self._before = self.tally.copy(), self.start_after
        self.start_after = done.key
        self.tally.delete_markers += done.delete_markers
        if done.answer is not None:
            self.tally.add(done.answer)

    def to_dict(self) -> dict[str, Any]:
        """The form for the next hop. A key whose versions are not all done is not counted."""
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
        """Raises KeyError, TypeError or ValueError for any other form than that of to_dict."""
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
