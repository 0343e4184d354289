"""The format of a table: one item says its number. The first writer to an empty table writes that item."""

from __future__ import annotations

import asyncio
from typing import Final

from auditor.errors import LedgerError
from auditor.ledger.dynamodb.calls import ConditionFailed, TableCalls
from auditor.ledger.dynamodb.changes import Change, key_of
from auditor.ledger.dynamodb.items import number

FORMAT: Final = 1
_NAME: Final = ("-", "-")
"""Name (pk and sk) of the item that holds the number. No other item has this name, because no bucket has the name
"-"."""


class TableFormat:
    """Checks the format of one table, and writes it into an empty one."""

    def __init__(self, calls: TableCalls) -> None:
        self._calls = calls
        self._begun, self._beginning = True, asyncio.Lock()  # until check() finds an empty table

    async def check(self) -> None:
        """Raise LedgerError if the table has items of another format, or of another program. An empty table passes."""
        self._begun = await self._is_said()
        # If another process begins the table in between, its item is there at the second look.
        if not self._begun and await self._has_items() and not await self._is_said():
            raise self._refused()

    async def begin(self) -> None:
        """Write the format into a table that was empty. Call this before each write. Raises LedgerError."""
        if not self._begun:
            async with self._beginning:
                await self._write()

    async def _write(self) -> None:
        if self._begun:  # by another task meanwhile
            return
        change = Change(_NAME).put("format", FORMAT).when("pk", None)
        try:
            await self._calls.send("UpdateItem", TableName=self._calls.name, **change.arguments())
        except ConditionFailed:  # another process was first
            self._begun = await self._is_said()
        else:
            self._begun = True

    async def _is_said(self) -> bool:
        """Return True if the table's item has the number of this format, False if there is no such item.

        Raises LedgerError for another number.
        """
        answer = await self._calls.send("GetItem", TableName=self._calls.name, Key=key_of(_NAME), ConsistentRead=True)
        item = answer.get("Item")
        if item is None:
            return False
        found = number(item, "format")
        if found is not None and found > FORMAT:
            raise LedgerError(
                f"the ledger table {self._calls.name!r} was written by a newer auditor (format {found}): upgrade this"
                " one"
            )
        if found != FORMAT:
            raise self._refused()
        return True

    async def _has_items(self) -> bool:
        answer = await self._calls.send("Scan", TableName=self._calls.name, Limit=1, ConsistentRead=True)
        return bool(answer["Items"])

    def _refused(self) -> LedgerError:
        return LedgerError(
            f"the ledger table {self._calls.name!r} was written by a development version of the auditor or by another"
            " program: make a new table and name it, by --ledger dynamodb:TABLE or by the stack's parameter ledger"
        )
