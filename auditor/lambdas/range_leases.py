"""Hold the number of ranges that are audited at once, by leases in the store of run folders.

Step Functions holds it too, but not over a redrive: the functions of the failed attempt may still be at work, each with
its share of the ceiling of calls, when the redriven children begin.
"""

from __future__ import annotations

import hashlib
import logging
import math
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Self

from msgspec import Struct

from auditor.errors import OutputError, RunTaken
from auditor.lambdas.claims import AFTER_DEADLINE
from auditor.model.dates import seconds_in_utc
from auditor.runs.paths import bucket_path, parse_run_id
from auditor.runs.stores.base import Store

log = logging.getLogger(__name__)


class RangeLease(Struct, frozen=True):
    """One invocation's lease of a range. until: end of the lease, in seconds of the epoch. attempt: a digest of the
    attempt that the invocation belongs to. token: differs from invocation to invocation.
    """

    range_id: str
    until: int
    attempt: str
    token: str

    @property
    def name(self) -> str:
        """The name of the lease's file. It has all members, so that one listing reads the leases of all ranges."""
        return f"{self.range_id}-{self.until}-{self.attempt}-{self.token}"

    @classmethod
    def of(cls, name: str) -> Self | None:
        """Read the name of a file. Return None if it is not that of a lease."""
        parts = name.split("-")
        if len(parts) != 4 or not (parts[1].isascii() and parts[1].isdecimal()):
            return None
        return cls(parts[0], int(parts[1]), parts[2], parts[3])


class RangeLeases:
    """The leases of one run's ranges, as empty files in `bucket=BUCKET/leases/RUN/`. All methods block.

    An invocation has the lease of its range from before its first call until it gives the lease back, or until shortly
    after its deadline, by which Lambda has killed it. Each invocation writes and deletes only a file of its own, and
    lists all files after it has written it: of any number of invocations, the last to list sees all others.
    """

    def __init__(self, store: Store, bucket: str, run: str, clock: Callable[[], float] = time.time) -> None:
        parse_run_id(run)
        self._store = store
        self._folder = f"{bucket_path(bucket)}/leases/{run}"
        self._clock = clock

    def take(self, range_id: str, attempt: str, *, at_once: int, seconds: float) -> RangeLease:
        """Take the lease of a range.

        attempt: name of the child execution and number of its redrives. Step Functions invokes the function again for
        the same attempt only after the invocation before has ended or failed, so that its lease does not count any
        more. at_once: largest number of ranges at once. seconds: time left until the invocation's deadline. Raises
        RunTaken if a function of another attempt may be at work on the range, or functions on at_once other ranges.
        """
        until = math.ceil(self._clock() + seconds + AFTER_DEADLINE)
        digest = hashlib.sha256(attempt.encode()).hexdigest()[:16]
        mine = RangeLease(range_id, until, digest, secrets.token_hex(8))
        self._store.put(self._path(mine), b"")
        try:
            others = [one for one in self._live() if one.token != mine.token]
            before = [one for one in others if one.range_id == range_id]
            if alive := [one.until for one in before if one.attempt != digest]:
                raise _busy(f"a function that began before the redrive may be working on range {range_id}", max(alive))
            ends = {one.range_id: one.until for one in others if one.range_id != range_id}
            if len(ends) >= at_once:
                raise _busy(
                    f"range {range_id} waits, because functions may be working on {len(ends)} others, of {at_once}",
                    min(ends.values()),
                )
        except BaseException:
            self.give_back(mine)
            raise
        for one in before:
            self.give_back(one)
        return mine

    def give_back(self, lease: RangeLease) -> None:
        """End a lease. If the store does not answer, the lease ends by itself after the deadline."""
        try:
            self._store.delete(self._path(lease))
        except OutputError as error:
            log.warning("the lease of range %s stays until the deadline: %s", lease.range_id, error)

    def forget(self) -> None:
        """Delete the leases that killed functions have left. Call it when the run has ended."""
        try:
            for path in self._store.list(f"{self._folder}/"):
                self._store.delete(path)
        except OutputError as error:
            log.warning("leases of ranges were not all deleted: %s", error)

    def _live(self) -> list[RangeLease]:
        now = self._clock()
        names = (path.rpartition("/")[2] for path in self._store.list(f"{self._folder}/"))
        return [one for name in names if (one := RangeLease.of(name)) is not None and one.until > now]

    def _path(self, lease: RangeLease) -> str:
        return f"{self._folder}/{lease.name}"


def _busy(words: str, until: int) -> RunTaken:
    return RunTaken(f"{words}, until {seconds_in_utc(datetime.fromtimestamp(until, UTC))} at the latest")
