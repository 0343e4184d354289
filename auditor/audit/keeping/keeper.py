"""Take from the line of an earlier run the facts that a run may use in place of asking for them. Pure."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from auditor.audit.keeping.turns import FactTurns
from auditor.model.dates import iso_date
from auditor.model.object import Acl, FactSource, Head, ObjectRef, ReadAt
from auditor.model.reuse import NamesOnly, Prior
from auditor.model.run_lines import ObjectLine

SETTLED: Final = 900.0
"""Seconds by which a fact must be younger than its object. LastModified has no fractions of a second, so a fact that
was read around the time of a write may be of the object before. The clock of the auditor may differ from that of S3 by
15 minutes: S3 refuses a request with a larger difference (RequestTimeTooSkewed, S3 API reference, error responses)."""
_NOTHING: Final = ReadAt()


class FactKeeper(Struct, frozen=True):
    """Says which facts of an earlier run may be used for a listed object.

    listed: when the earlier run read the facts that its lines give no time for, in ISO 8601. acl, head: the turns of
    the facts; None to keep none. values: True if the values of user metadata are needed too.
    """

    listed: str
    acl: FactTurns | None
    head: FactTurns | None
    values: bool = False

    def prior(self, ref: ObjectRef, line: ObjectLine, now: float) -> Prior | None:
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
        return Prior(acl, acl_at, read_at.acl_from or FactSource.RUN, head, head_at, FactSource.RUN)

    def _holds(self, head: Head, line: ObjectLine, ref: ObjectRef) -> bool:
        """True if the HEAD is of the object as it is listed, and has all that is needed."""
        lacks_values = self.values and isinstance(head.metadata, NamesOnly) and len(head.metadata) > 0
        return line.storage_class == ref.storage_class and not lacks_values


_WHOLE: Final = (None, FactSource.RUN)
"""The sources whose HEAD has all members: the Inventory's has not."""


def _is_current(turns: FactTurns | None, ref: ObjectRef, at: str, now: float) -> bool:
    if turns is None:
        return False
    try:
        read, written = iso_date(at).timestamp(), iso_date(ref.last_modified).timestamp()
    except (ValueError, OverflowError):
        return False
    return written + SETTLED <= read and not turns.due(ref.key, ref.version_id, read, now)
