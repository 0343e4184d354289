"""Give shards to a table that was begun without (shards.py), while it is in use.

Rows are copied into shards of the same table, and compared with their copies, until few of them change during a pass.
Then the table's schema version says that the copies count. Until then nobody reads them, so that an interruption leaves
the table as it was. Nothing is deleted. A writer that has not noticed may write to the old rows for a while: the last
passes merge what it wrote.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from auditor.aio.groups import together
from auditor.errors import LedgerError
from auditor.ledger.dynamodb.calls import BATCH, THREADS, ConditionFailed
from auditor.ledger.dynamodb.changes import key_of
from auditor.ledger.dynamodb.evidence import note
from auditor.ledger.dynamodb.items import DIGESTS, STATE, WHOLE_KEY, Item, Name, evidence, version_and_etag
from auditor.ledger.dynamodb.layout import REREAD_SECONDS
from auditor.ledger.dynamodb.lines import lines_of, looks_of
from auditor.ledger.dynamodb.row_merge import CopiesDiffer, looks, merged
from auditor.ledger.dynamodb.shards import cut_key, own_name, stored_name
from auditor.ledger.dynamodb.table import Table
from auditor.ledger.history import fingerprint
from auditor.ledger.sharding import CopiedRows, RowConflict

_SEGMENTS: Final = 4
"""Number of parts of the table that are scanned at the same time. Memory holds one page of each part, at most 1 MB."""
_FEW: Final = 100
"""The copies count after a pass that has written at most one in so many of them. The passes after it merge the rest."""
_PASSES: Final = 20
_TRIES: Final = 10
_UNNOTICED: Final = round(1.5 * REREAD_SECONDS)
"""Seconds after which no writer of this release takes the table for one without shards."""
_OLD_ROWS: Final[dict[str, Any]] = {
    "FilterExpression": "sk >= :state AND contains(pk, :slash)",
    "ExpressionAttributeValues": {":state": {"S": STATE}, ":slash": {"S": "/"}},
}
"""Arguments of a Scan for the rows that a table without shards has outside of them."""


@dataclass(slots=True)
class Sharding:
    """Gives shards to one table. tell, stop: as in ShardableLedger.give_shards(). sleep: waits for so many seconds."""

    table: Table
    tell: Callable[[CopiedRows], object]
    stop: Callable[[], bool]
    sleep: Callable[[float], Awaitable[None]]
    _number: int = field(default=0, init=False)
    _rows: int = field(default=0, init=False)
    _written: int = field(default=0, init=False)

    async def run(self) -> bool:
        """Return False if the work was stopped. Raises LedgerError."""
        for _ in range(_PASSES):
            await self._pass()
            if self.stop():
                return False
            if self.table.sharded and not self._written:
                return True
            if not self.table.sharded and self._written * _FEW <= self._rows:
                await self._switch()
        raise LedgerError(
            f"rows of the ledger table {self.table.name!r} are written as fast as they are copied: stop the auditors"
            " that write to it, and repeat the command"
        )

    async def _switch(self) -> None:
        """Let the copies count, and wait until every writer of this release has noticed."""
        if not await self.table.layout.switch():
            await self.table.probe()
        elif self._rows:
            for _ in range(_UNNOTICED):
                if not self.stop():
                    await self.sleep(1.0)

    async def _pass(self) -> None:
        """Bring the copies of all rows up to date."""
        self._number, self._rows, self._written = self._number + 1, 0, 0
        self.tell(CopiedRows(self._number, 0, 0))
        await together(self._segment(number) for number in range(_SEGMENTS))

    async def _segment(self, number: int) -> None:
        arguments = {"Segment": number, "TotalSegments": _SEGMENTS, "ConsistentRead": True, **_OLD_ROWS}
        pages = self.table.calls.pages("Scan", **arguments)
        async with aclosing(pages):
            async for page in pages:
                for start in range(0, len(page), BATCH):
                    if self.stop():
                        return
                    await self._part(page[start : start + BATCH])

    async def _part(self, rows: Sequence[Item]) -> None:
        """Bring the copies of these rows, at most BATCH of them, up to date."""
        names = [stored_name(_name(row)) for row in rows]
        items = await self.table.calls.get_batch([key_of(name) for name in names], consistent=True)
        copies = {_name(item): item for item in items}
        waiting = iter(zip(names, rows, strict=True))
        written: list[bool] = []
        conflicts: list[RowConflict] = []

        async def work() -> None:
            for name, row in waiting:
                try:
                    written.append(await _copied(self.table, name, row, copies.get(name)))
                except CopiesDiffer as difference:
                    bucket, _, key = row["pk"]["S"].partition("/")
                    conflicts.append(RowConflict(bucket, key, difference.what))

        await together(work() for _ in range(min(THREADS, len(rows))))
        self._rows += len(rows)
        self._written += sum(written)
        self.tell(CopiedRows(self._number, len(rows), sum(written), tuple(conflicts)))


async def _copied(table: Table, name: Name, row: Item, copy: Item | None) -> bool:
    """Bring the copy of a row up to date. Return True if something was written. Raises CopiesDiffer.

    name: pk and sk of the copy. copy: as it was read; None if there was none.
    """
    for _ in range(_TRIES):
        stored = _as_copy(name, row)
        if copy is not None:
            stored = {**merged(own_name(copy), own_name(stored)), **key_of(name)}
        if stored == copy:
            return await _noted(table, row, copy)
        try:
            await table.calls.send("UpdateItem", TableName=table.name, **_replacing(name, copy or {}, stored))
        except ConditionFailed:  # another process has written it
            found = await table.calls.get_batch([key_of(name)], consistent=True)
            copy = found[0] if found else None
        else:
            return True
    raise LedgerError(f"the ledger table {table.name!r} changes while it is copied: stop what deletes its items")


def _name(item: Item) -> Name:
    return item["pk"]["S"], item["sk"]["S"]


def _as_copy(name: Name, row: Item) -> dict[str, Any]:
    """Return a row as a table with shards stores it, under its name there."""
    stored: dict[str, Any] = {**row, **key_of(name)}
    if (key := cut_key(_name(row))) is not None:
        stored[WHOLE_KEY] = {"S": key}
    if row["sk"]["S"] >= DIGESTS and own_name(stored)["sk"] != row["sk"]:  # a hash has taken the place of its name
        version, etag = version_and_etag(row)
        stored |= {"version_id": {"S": version}, "etag": {"S": etag}}
    return stored


def _replacing(name: Name, before: Item, after: Item) -> dict[str, Any]:
    """Return the arguments of UpdateItem that replace an item, on the condition that it is as it was read.

    before: as it was read; {} if there was none.
    """
    names = {attribute: f"#a{number}" for number, attribute in enumerate({**before, **after}.keys() - {"pk", "sk"})}
    wanted = [attribute for attribute in names if attribute in after and before.get(attribute) != after[attribute]]
    gone = [attribute for attribute in names if attribute not in after]
    values = {f":b{names[one][2:]}": value for one, value in before.items() if one in names}
    values |= {f":a{names[one][2:]}": after[one] for one in wanted}
    sets = ", ".join(f"{names[one]} = :a{names[one][2:]}" for one in wanted)
    removes = ", ".join(names[one] for one in gone)
    unchanged = [
        f"{alias} = :b{alias[2:]}" if attribute in before else f"attribute_not_exists({alias})"
        for attribute, alias in names.items()
    ]
    return {
        "Key": key_of(name),
        "UpdateExpression": " ".join([f"SET {sets}"] * bool(sets) + [f"REMOVE {removes}"] * bool(removes)),
        "ConditionExpression": " AND ".join(unchanged) if before else "attribute_not_exists(pk)",
        "ExpressionAttributeNames": {alias: attribute for attribute, alias in names.items()},
        "ExpressionAttributeValues": values,
    }


async def _noted(table: Table, row: Item, copy: Item) -> bool:
    """Write into the history what a late writer has verified of a row whose copy was verified, too.

    Return True if something was written.
    """
    if not table.sharded or row["sk"]["S"] < DIGESTS:
        return False
    bucket, _, key = row["pk"]["S"].partition("/")
    version, _ = evidence(bucket, key, row)
    late = [
        line.event
        for algorithm in version.digests
        if not set(looks(row, algorithm)) <= set(looks(copy, algorithm))
        for _, line in looks_of(bucket, row, version, algorithm, key)
    ]
    if not late:
        return False
    known = {fingerprint(line.event) for line in await lines_of(table, bucket, key)}
    missing = [event for event in late if fingerprint(event) not in known]
    await note(table, bucket, missing)
    return bool(missing)
