"""Decide which objects a run reads: all, the ones not read for long, or a slice that rotates."""

from __future__ import annotations

import hashlib
import math
from datetime import UTC, datetime
from typing import Final, Protocol

from auditor.model.record import record

DAY: Final = 86_400.0


class Due(Protocol):
    """Decides whether the run that began at `now` reads an object.

    checked: when its bytes were last read or its digest recorded, ISO 8601, UTC; None: not known.
    """

    def due(self, key: str, version_id: str | None, checked: str | None, now: datetime) -> bool: ...

    @property
    def words(self) -> str:
        """For the summary."""
        ...


@record()
class Everything:
    """Every object in every run."""

    def due(self, key: str, version_id: str | None, checked: str | None, now: datetime) -> bool:
        return True

    @property
    def words(self) -> str:
        return "everything"


@record()
class OlderThan:
    """Each object once within `limit`, in the run that a hash of its key selects; an overdue object is read at once.

    limit, every: seconds; every: from one run to the next. Time since 1970 is cut into spans of `every`. Each object's
    slot comes round once in limit / every spans, so no object grows older than the limit, and each run reads about as
    many objects as any other, even where one run recorded them all.
    """

    limit: float
    every: float = DAY

    def due(self, key: str, version_id: str | None, checked: str | None, now: datetime) -> bool:
        if _slot(key, version_id, max(1, math.floor(self.limit / self.every)), self.every, now):
            return True
        if checked is None:
            return False
        try:
            then = datetime.fromisoformat(checked)
        except ValueError:  # a ledger that was edited by hand
            return True
        return (now - (then if then.tzinfo else then.replace(tzinfo=UTC))).total_seconds() >= self.limit

    @property
    def words(self) -> str:
        return f"not looked at for {_days(self.limit)}, with a run every {_days(self.every, one='day')}"


@record()
class Share:
    """Another slice of `percent` of the objects in each run: each object once in ceil(100 / percent) runs.

    every: seconds from one run to the next.
    """

    percent: float
    every: float = DAY

    def due(self, key: str, version_id: str | None, checked: str | None, now: datetime) -> bool:
        return _slot(key, version_id, math.ceil(100 / self.percent), self.every, now)

    @property
    def words(self) -> str:
        return f"{self.percent:g} percent, with a run every {_days(self.every, one='day')}"


def due_of(max_age: float | None, percent: float | None, every: float) -> Due:
    """The rule of the settings max_age, percent and every."""
    if max_age is not None:
        return OlderThan(max_age, every)
    if percent is not None:
        return Share(percent, every)
    return Everything()


def _days(seconds: float, one: str = "1 day") -> str:
    return one if seconds == DAY else f"{seconds / DAY:g} days"


def _slot(key: str, version_id: str | None, slots: int, every: float, now: datetime) -> bool:
    """The object's slot is the present one. SHA-256, unlike Python's hash, gives every process the same slot."""
    digest = hashlib.sha256(f"{key}\0{version_id or ''}".encode()).digest()
    return int.from_bytes(digest[:8]) % slots == math.floor(now.timestamp() / every) % slots
