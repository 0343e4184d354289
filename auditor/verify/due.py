"""Decide which objects a run reads: all objects, the ones not read for long, or another share in each run."""

from __future__ import annotations

import hashlib
import math
from datetime import UTC, datetime
from typing import Final, Protocol

from auditor.model.record import record

DAY: Final = 86_400.0


class Due(Protocol):
    """A schedule: it decides if the run that began at `now` reads an object.

    checked: when the object's digest was last verified or recorded, ISO 8601, UTC; None if that is unknown.
    """

    def due(self, key: str, version_id: str | None, checked: str | None, now: datetime) -> bool: ...

    @property
    def words(self) -> str:
        """The schedule in words, for the summary."""
        ...


@record()
class Everything:
    """Schedule: every object is due in every run."""

    def due(self, key: str, version_id: str | None, checked: str | None, now: datetime) -> bool:
        return True

    @property
    def words(self) -> str:
        return "everything"


@record()
class OlderThan:
    """Schedule: each object is due once within `limit`, in the run that a hash of its key selects.

    limit: seconds. An object that was not read for so long is due at once. every: seconds from one run to the next.
    The time since 1970 is cut into intervals of `every`, which have the slots 0 to limit / every - 1 in turn. The hash
    gives each object one slot. So each run reads about the same number of objects, even if one run recorded them all.
    """

    limit: float
    every: float = DAY

    def due(self, key: str, version_id: str | None, checked: str | None, now: datetime) -> bool:
        if _is_in_slot(key, version_id, max(1, math.floor(self.limit / self.every)), self.every, now):
            return True
        if checked is None:
            return False
        try:
            then = datetime.fromisoformat(checked)
        except ValueError:  # the ledger was edited by hand
            return True
        return (now - (then if then.tzinfo else then.replace(tzinfo=UTC))).total_seconds() >= self.limit

    @property
    def words(self) -> str:
        return f"not looked at for {_days(self.limit)}, with a run every {_days(self.every, one='day')}"


@record()
class Share:
    """Schedule: each run reads another `percent` of the objects; each object is due once in ceil(100 / percent) runs.

    every: seconds from one run to the next.
    """

    percent: float
    every: float = DAY

    def due(self, key: str, version_id: str | None, checked: str | None, now: datetime) -> bool:
        return _is_in_slot(key, version_id, math.ceil(100 / self.percent), self.every, now)

    @property
    def words(self) -> str:
        return f"{self.percent:g} percent, with a run every {_days(self.every, one='day')}"


def due_of(max_age: float | None, percent: float | None, every: float) -> Due:
    """Return the schedule that the settings max_age, percent and every describe."""
    if max_age is not None:
        return OlderThan(max_age, every)
    if percent is not None:
        return Share(percent, every)
    return Everything()


def _days(seconds: float, one: str = "1 day") -> str:
    return one if seconds == DAY else f"{seconds / DAY:g} days"


def _is_in_slot(key: str, version_id: str | None, slots: int, every: float, now: datetime) -> bool:
    """True if the object's slot is the slot of `now`. SHA-256 gives the same slot in every process; hash() does not."""
    digest = hashlib.sha256(f"{key}\0{version_id or ''}".encode()).digest()
    return int.from_bytes(digest[:8]) % slots == math.floor(now.timestamp() / every) % slots
