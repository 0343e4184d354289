"""Give an order to a ledger that has none: its rows are copied to where they can be read in key order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class RowConflict:
    """A row that contradicts its copy, which stays as it is. what: "size", or the algorithm whose digests differ."""

    bucket: str
    key: str
    what: str


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """Counts of some rows of the ledger, and of their copies, in one pass over all rows.

    number: of the pass, from 1 on. rows: number of rows that were compared with their copies. written: number of copies
    that were missing or older, and were written.
    """

    number: int
    rows: int
    written: int
    conflicts: tuple[RowConflict, ...] = ()


@runtime_checkable
class ShardableLedger(Protocol):
    """A ledger whose rows can be given an order while auditors use it."""

    async def give_shards(self, tell: Callable[[CopiedRows], object], stop: Callable[[], bool]) -> bool:
        """Copy all rows into shards, and read them from there from then on. Delete nothing.

        tell: is called with each part of a pass. stop: returns True to end early. Return False if the work ended early;
        the next call finds the copies, and goes on. Raises LedgerError.
        """
        ...
