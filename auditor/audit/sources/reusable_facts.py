"""Decide which facts of an earlier run may be used again: those that still hold, and that are not due. Pure."""

from __future__ import annotations

from typing import Final
from zlib import crc32

from msgspec import Struct

from auditor.model.dates import iso_date
from auditor.model.object import Acl, FactOrigin, Head, ObjectRef, ReadAt
from auditor.model.reuse import KnownFacts, NamesOnly
from auditor.model.run_lines import ObjectLine

SETTLED: Final = 900.0
"""Seconds by which a fact must be younger than its object. LastModified has no fractions of a second, so a fact that
was read around the time of a write may be of the object before. The clock of the auditor may differ from that of S3 by
15 minutes: S3 refuses a request with a larger difference (RequestTimeTooSkewed, S3 API reference, error responses)."""
_NOTHING: Final = ReadAt()
_WHOLE: Final = (None, FactOrigin.RUN)
"""The sources whose HEAD has all members: the Inventory's has not."""
_SLACK: Final = 0.05
"""Share of the time between two runs by which a run may come late, without that a fact becomes older than its limit."""
_SPREAD: Final = 2_654_435_761  # Knuth's multiplicative hash: keys that count upwards fall into all turns
_WORD: Final = 2**32


class RefreshSchedule(Struct, frozen=True):
    """The order in which runs ask again for one kind of fact.

    Each object has its turn once in `number` runs, by its key, which makes the runs even. Whatever its turn, a fact is
    due if the next run would come too late for it: its age and the time between two runs are more than the limit
    together. So no fact that a run keeps is older than its limit before the next run, as long as that comes in time.

    limit: largest age, in seconds. every: seconds from one run to the next. began: start of this run, in seconds since
    1970.
    """

    limit: float
    every: float
    began: float

    @property
    def number(self) -> int:
        """Number of runs in which each object has one turn, at least 1: then each run asks about every object."""
        return max(1, int((self.limit - _SLACK * self.every) // self.every))

    def due(self, key: str, version_id: str | None, read: float, now: float) -> bool:
        """True if the fact of this object must be asked. read: when it was read; now: the present time, both in seconds
        since 1970. A fact of the future has no age: it is due.
        """
        if self.limit == float("inf"):
            return read > now
        if read > now or now - read + self.every > self.limit:
            return True
        turn = int(self.began // self.every)
        return int(read // self.every) < turn and self.turn_of(key, version_id) == turn % self.number

    def turn_of(self, key: str, version_id: str | None) -> int:
        """Return the turn of an object, from 0."""
        name = key if version_id is None else f"{key}\0{version_id}"
        spread = crc32(name.encode(errors="surrogatepass")) * _SPREAD % _WORD
        return spread * self.number // _WORD


class ReusableFacts(Struct, frozen=True):
    """Says which facts of an earlier run may be used for a listed object.

    listed: when the earlier run read the facts that its lines give no time for, in ISO 8601. acl, head: the schedules
    of the facts; None to use none. values: True if the values of user metadata are needed too.
    """

    listed: str
    acl: RefreshSchedule | None
    head: RefreshSchedule | None
    values: bool = False

    def of(self, ref: ObjectRef, line: ObjectLine, now: float) -> KnownFacts | None:
        """Return the facts on the line that hold for the listed object, and are not due; None if there are none.

        line: of the same key and version. now: the present time, in seconds since 1970.
        """
        if (line.etag, line.size, line.last_modified) != (ref.etag, ref.size, ref.last_modified):
            return None
        read_at = line.read_at or _NOTHING
        acl = head = None
        acl_at, head_at = read_at.acl or self.listed, read_at.head or self.listed
        if isinstance(line.acl, Acl) and _is_current(self.acl, ref, acl_at, now):
            acl = line.acl
        if isinstance(line.head, Head) and self._holds(line.head, line, ref) and read_at.head_from in _WHOLE:
            head = line.head if _is_current(self.head, ref, head_at, now) else None
        if acl is None and head is None:
            return None
        return KnownFacts(acl, acl_at, read_at.acl_from or FactOrigin.RUN, head, head_at, FactOrigin.RUN)

    def _holds(self, head: Head, line: ObjectLine, ref: ObjectRef) -> bool:
        """True if the HEAD is of the object as it is listed, and has all that is needed."""
        lacks_values = self.values and isinstance(head.metadata, NamesOnly) and len(head.metadata) > 0
        return line.storage_class == ref.storage_class and not lacks_values


def _is_current(schedule: RefreshSchedule | None, ref: ObjectRef, at: str, now: float) -> bool:
    if schedule is None:
        return False
    try:
        read, written = iso_date(at).timestamp(), iso_date(ref.last_modified).timestamp()
    except (ValueError, OverflowError):
        return False
    return written + SETTLED <= read and not schedule.due(ref.key, ref.version_id, read, now)
