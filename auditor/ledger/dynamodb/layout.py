"""The layout of a table, which is where the table stores its items: with shards (shards.py) or without.

A new table gets shards before its first item. A table that an earlier release began without keeps that layout until
sharding.py gives it shards.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from auditor.errors import LedgerError
from auditor.ledger.dynamodb.calls import ConditionFailed, TableCalls, is_denied
from auditor.ledger.dynamodb.changes import Change, key_of
from auditor.ledger.dynamodb.items import number

_LOG: Final = logging.getLogger(__name__)

SHARDED: Final = 3
"""Schema version of a table with shards."""
UNSHARDED: Final = 2
"""Schema version of a table without shards. Version 1 also had no seals, and no item for this number."""
_SCHEMA: Final = ("-", "-")
"""Name (pk and sk) of the item that holds the table's schema version. No other item has this name, because no bucket
has the name "-"."""
REREAD_SECONDS: Final = 60.0
"""Age of the layout after which a writer to a table without shards reads it again. A table that gets shards has no
writer that does not know of them after this time."""


class Layout:
    """Reads the layout of one table, and writes it into a table that has none.

    sharded: True if the table has shards. It is False until read() is called, and in a table without an item.
    """

    def __init__(self, calls: TableCalls, clock: Callable[[], float]) -> None:
        self.sharded = False
        self._calls = calls
        self._clock = clock
        self._declared, self._declaring = True, asyncio.Lock()  # until read() says otherwise
        self._read_at = clock()

    async def read(self) -> None:
        """Read the layout. Raises LedgerError, also if a newer release has written the table."""
        self._read_at = self._clock()
        name = self._calls.name
        answer = await self._calls.send("GetItem", TableName=name, Key=key_of(_SCHEMA), ConsistentRead=True)
        version = number(answer.get("Item", {}), "schema") or 0
        if version > SHARDED:
            raise LedgerError(
                f"the ledger table {name!r} was written by a newer auditor (schema {version}): upgrade this one"
            )
        self._declared = version >= UNSHARDED
        self.sharded = version == SHARDED

    async def begin_shards(self) -> None:
        """Give an empty table shards now. Raises LedgerError if the table has items without shards."""
        if self.sharded:
            return
        if await self._has_items() or not await self._written(SHARDED, before=None):
            await self.read()  # another process may have begun the table
        if not self.sharded:
            raise LedgerError(
                f"the ledger table {self._calls.name!r} has items without shards: leave ?shards out, or give it shards"
                f" by auditor ledger --shard dynamodb:{self._calls.name}"
            )

    async def declare(self) -> None:
        """Write the layout into a table that has none: shards, if the table is empty. Call this before each write."""
        if self.sharded:
            return
        async with self._declaring:
            if self._clock() - self._read_at > REREAD_SECONDS:
                await self.read()
            if not self._declared and not await self._written(await self._chosen(), before=None):
                await self.read()  # another process has done it

    async def switch(self) -> bool:
        """Give a table shards whose rows have been copied into them. Return False if another process has done it."""
        return await self._written(SHARDED, before=UNSHARDED if self._declared else None)

    async def _chosen(self) -> int:
        """Return the layout for a table without one: SHARDED if the table is empty."""
        try:
            return UNSHARDED if await self._has_items() else SHARDED
        except LedgerError as error:
            if not is_denied(error):
                raise
            _LOG.warning("%s; the table goes on without shards, and audits ask about each object", error)
            return UNSHARDED

    async def _has_items(self) -> bool:
        answer = await self._calls.send("Scan", TableName=self._calls.name, Limit=1, ConsistentRead=True)
        return bool(answer["Items"])

    async def _written(self, version: int, *, before: int | None) -> bool:
        """Replace the schema version `before` in the table; None if the table has no schema version yet.

        Return False, and write nothing, if the table has another one.
        """
        change = Change(_SCHEMA).put("schema", version).when("schema", before)
        try:
            await self._calls.send("UpdateItem", TableName=self._calls.name, **change.arguments())
        except ConditionFailed:
            return False
        self._declared, self.sharded = True, version == SHARDED
        return True
