"""`auditor ledger --shard`: give shards to a DynamoDB ledger that was begun without, and tell what was copied."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

from auditor.aio.stop import Stop
from auditor.cli import signals
from auditor.cli.options import check_needed, settings_of
from auditor.cli.output import first_word, print_json
from auditor.cli.progress import make_progress, showing
from auditor.cli.signals import stop_on_signals
from auditor.config.resources import check_ledger, ledger_of
from auditor.config.settings import Settings
from auditor.errors import UsageError
from auditor.ledger.sharding import CopiedRows, RowConflict, ShardableLedger
from auditor.progress import Snapshot
from auditor.text import counted, visible

_SHOWN: Final = 100


def run(options: argparse.Namespace) -> int:
    if options.target is not None:
        raise UsageError("--shard gives shards to a whole ledger: leave the key out, or leave --shard out")
    options.ledger = options.shard or options.ledger
    settings = settings_of(options)
    check_needed(settings, "ledger")
    check_ledger(settings)
    first_word(f"giving shards to the ledger {visible(settings.ledger or '')}")
    found = signals.run(_given(settings))
    if options.format == "json":
        print_json(found.document())
    else:
        sys.stdout.write("".join(f"{line}\n" for line in found.lines()))
    if not found.complete:
        return 4
    return 3 if found.conflicted else 0


async def _given(settings: Settings) -> ShardingCounts:
    found, stop, began = ShardingCounts(settings.ledger or ""), Stop(), time.monotonic()
    stop_on_signals(stop)

    def snapshot() -> Snapshot:
        seconds = time.monotonic() - began
        return Snapshot(what=visible(found.ledger), objects=found.compared, seconds=seconds)

    with closing(make_progress()) as progress:
        async with ledger_of(settings) as ledger, showing(progress, snapshot, ends=False):
            if not isinstance(ledger, ShardableLedger):
                raise UsageError(f"--shard takes dynamodb:TABLE: {visible(found.ledger)} is in key order as it is")
            found.complete = await ledger.give_shards(found.add, stop.is_set)
    return found


@dataclass(slots=True)
class ShardingCounts:
    """The counts of the rows that `--shard` has copied and compared so far.

    rows: number of rows of the last pass. written: number of copies that were written in all passes. compared: number
    of rows of all passes. conflicted: number of rows of the last pass that contradict their copies. conflicts: the
    first of them, at most _SHOWN.
    """

    ledger: str
    rows: int = 0
    written: int = 0
    compared: int = 0
    conflicted: int = 0
    conflicts: list[RowConflict] = field(default_factory=list)
    complete: bool = False
    _number: int = 0

    def add(self, part: CopiedRows) -> None:
        if part.number != self._number:
            self._number, self.rows, self.conflicted, self.conflicts = part.number, 0, 0, []
        self.rows += part.rows
        self.compared += part.rows
        self.written += part.written
        self.conflicted += len(part.conflicts)
        self.conflicts += part.conflicts[: _SHOWN - len(self.conflicts)]

    def document(self) -> dict[str, Any]:
        """Return the JSON object that `--format json` prints."""
        conflicts = [{"bucket": one.bucket, "key": one.key, "what": one.what} for one in self.conflicts]
        counts = {"rows": self.rows, "written": self.written, "conflicted": self.conflicted}
        return {"ledger": self.ledger, "complete": self.complete, **counts, "conflicts": conflicts}

    def lines(self) -> Iterator[str]:
        if self.complete:
            yield f"{counted(self.rows, 'row')} in shards: each was compared with its copy; {self.written:,} written"
        else:
            yield f"complete: NO; {self.written:,} copies written; repeat the command to go on"
        for one in self.conflicts:
            yield f"  conflict: {visible(f's3://{one.bucket}/{one.key}')}: the row and its copy differ in {one.what}"
        if self.conflicted > len(self.conflicts):
            yield f"  and {self.conflicted - len(self.conflicts):,} more"
        if self.conflicted:
            yield "the copies count; the old rows are still in the table, under BUCKET/KEY"
