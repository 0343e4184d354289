"""A snapshot of a ledger that has no order: its rows of one bucket, scanned once, and sorted by object key."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol, runtime_checkable

from auditor.ledger.base import KeyRecord

SnapshotLine = tuple[str, bytes]
"""An object key, and all of its rows as one line of ASCII that the ledger can read again, with its newline."""


@runtime_checkable
class ScannedLedger(Protocol):
    """A ledger that has to read all its rows to yield some keys in order.

    A reader who comes back for later keys keeps the result of the first reading.
    """

    @property
    def scanned(self) -> bool:
        """False if this ledger can begin at any key after all. A snapshot then saves nothing."""
        ...

    def exported(
        self, bucket: str, prefix: str = "", start_after: str = ""
    ) -> AsyncGenerator[list[SnapshotLine], None]:
        """Yield the lines of the keys that subjects() would yield, in the same order, in lists, in bounded memory."""
        ...

    async def imported(self, bucket: str, lines: Sequence[bytes]) -> list[KeyRecord]:
        """Return the record of each line's key, as of the time of the export.

        Raises ValueError, KeyError or TypeError for a damaged line.
        """
        ...
