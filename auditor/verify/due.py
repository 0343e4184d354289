"""Decide which objects a run reads: all objects, the objects that were not read for a given time, or a share of all."""

from __future__ import annotations

import hashlib
import math
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

DAY: Final = 86_400.0
LONGEST_RUN: Final = 7 * DAY
"""Longest time in seconds that a run can take. A time that lies further than this after the run's begin comes from a
wrong clock."""
SPARE_RUNS: Final = 3
"""Largest number of runs by which --max-age makes an object due early. The number is a fifth of the runs that fit into
this age, but at least one and at most SPARE_RUNS.

So a missed run, a long run, or a change of the clock makes no object too old."""


class Schedule(Struct, frozen=True):
    """Spreads the reads of objects over runs: each object has its turn in one of `runs` runs, chosen by a hash of its
    key.

    An object is due if it was not read since its last turn. After a missed run, the next run therefore reads the
    objects of both runs. runs: 0 if every object is due in every run. every: seconds from one run to the next. limit:
    age in seconds after which a read is too late. words: the schedule in words, for the summary.
    """

    words: str
    runs: int = 0
    every: float = DAY
    limit: float = math.inf

    def due(self, key: str, version_id: str | None, checked: str | None, now: datetime) -> bool:
        """True if the run that began at `now` must read the object.

        checked: time at which the object's digest was last verified or recorded (ISO 8601 in UTC); None if unknown.
        """
        age, period = age_of(checked, now), self.runs * self.every
        if age is None or not self.runs:
            return True
        since = (now.timestamp() - _number(key, version_id) % self.runs * self.every) % period
        return age > since

    def late(self, checked: str | None, at: datetime) -> float:
        """Return the number of seconds by which the object's age at the time `at` exceeds the limit; 0 if the age is
        within the limit.

        checked: time of the object's last check; None if unknown, which gives 0.
        """
        return max(0.0, (age_of(checked, at) or 0.0) - self.limit)


def due_of(max_age: float | None, percent: float | None, every: float) -> Schedule:
    """Return the schedule for the settings --max-age and --every (seconds) and --percent."""
    if max_age is not None:
        runs = math.floor(max_age / every)
        runs -= max(1, min(SPARE_RUNS, runs // 5))
        words = f"not read for {days(max_age)}, with a run every {days(every, one='day')}"
        return Schedule(words, max(0, runs), every, max_age)
    if percent is not None:
        runs = math.ceil(100 / percent)
        words = f"{percent:g} percent, with a run every {days(every, one='day')}"
        return Schedule(words, 0 if runs == 1 else runs, every, (runs + 1) * every)
    return Schedule("everything")


def age_of(checked: str | None, now: datetime) -> float | None:
    """Return the number of seconds from `checked` to `now`; None if `checked` is None, is not a time, or is far in the
    future.
    """
    try:
        then = datetime.fromisoformat(checked or "")
    except ValueError:  # the ledger was edited by hand
        return None
    age = (now - (then if then.tzinfo else then.replace(tzinfo=UTC))).total_seconds()
    return age if age >= -LONGEST_RUN else None


def days(seconds: float, one: str = "1 day") -> str:
    return one if seconds == DAY else f"{seconds / DAY:g} days"


def _number(key: str, version_id: str | None) -> int:
    """Return a number for an object: a hash of its key and version ID. Unlike the result of hash(), the number is the
    same in every process.
    """
    digest = hashlib.sha256(f"{key}\0{version_id or ''}".encode()).digest()
    return int.from_bytes(digest[:8])
