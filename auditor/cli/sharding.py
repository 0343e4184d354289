"""`auditor ledger --shard`: give shards to a DynamoDB ledger that was begun without, and tell what was copied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from auditor.aio.stop import Stop
from auditor.cli.whole_ledger import SHOWN, WholeLedgerWork
from auditor.errors import UsageError
from auditor.ledger.base import Ledger
from auditor.ledger.sharding import CopiedRows, RowConflict, ShardableLedger
from auditor.text import counted, visible


@dataclass(slots=True)
class ShardingCounts:
    """The counts of the rows that `--shard` has copied and compared so far.

    rows: number of rows of the last pass. written: number of copies that were written in all passes. compared: number
    of rows of all passes. conflicted: number of rows of the last pass that contradict their copies. conflicts: the
    first of them, at most SHOWN.
    """

    ledger: str
    rows: int = 0
    written: int = 0
    compared: int = 0
    conflicted: int = 0
    conflicts: list[RowConflict] = field(default_factory=list)
    complete: bool = False
    _number: int = 0

    @property
    def objects(self) -> int:
        return self.compared

    @property
    def faults(self) -> int:
        return self.conflicted

    def add(self, part: CopiedRows) -> None:
        if part.number != self._number:
            self._number, self.rows, self.conflicted, self.conflicts = part.number, 0, 0, []
        self.rows += part.rows
        self.compared += part.rows
        self.written += part.written
        self.conflicted += len(part.conflicts)
        self.conflicts += part.conflicts[: SHOWN - len(self.conflicts)]

    def document(self) -> dict[str, Any]:
        conflicts = [{"bucket": one.bucket, "key": one.key, "what": one.what} for one in self.conflicts]
        counts = {"rows": self.rows, "written": self.written, "conflicted": self.conflicted}
        return {"ledger": self.ledger, "complete": self.complete, **counts, "conflicts": conflicts}

    def lines(self) -> Iterator[str]:
        if self.complete and not self.rows:
            yield "no row is without shards: nothing was copied"
        elif self.complete:
            yield f"{counted(self.rows, 'row')} in shards: each was compared with its copy; {self.written:,} written"
        else:
            yield f"complete: NO; {self.written:,} copies written; repeat the command to go on"
        for one in self.conflicts:
            yield f"  conflict: {visible(f's3://{one.bucket}/{one.key}')}: the row and its copy differ in {one.what}"
        if self.conflicted > len(self.conflicts):
            yield f"  and {self.conflicted - len(self.conflicts):,} more"
        if self.conflicted:
            yield "the copies count; the old rows are still in the table, under BUCKET/KEY"


async def _give_shards(ledger: Ledger, counts: ShardingCounts, stop: Stop) -> None:
    if not isinstance(ledger, ShardableLedger):
        raise UsageError(f"--shard takes dynamodb:TABLE: {visible(counts.ledger)} is in key order as it is")
    counts.complete = await ledger.give_shards(counts.add, stop.is_set)


SHARD: Final = WholeLedgerWork(
    "--shard", "gives shards to a whole ledger", "giving shards to", ShardingCounts, _give_shards
)
