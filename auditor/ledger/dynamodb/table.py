"""Read and write the items of one DynamoDB table, by their plain names: in batches and pages."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

from auditor.aio.groups import together
from auditor.aws.client import ThreadedClient
from auditor.ledger.dynamodb.calls import BATCH, THREADS, TableCalls
from auditor.ledger.dynamodb.changes import Change, key_of
from auditor.ledger.dynamodb.items import WHOLE_KEY, Item, Name
from auditor.ledger.dynamodb.shards import cut_key, own_name, stored_name, stored_range
from auditor.ledger.dynamodb.table_format import TableFormat

T = TypeVar("T")
R = TypeVar("R")


class Table:
    """One DynamoDB table, called by at most THREADS calls at a time.

    Callers use the plain names of items (items.py). This class converts them to the names that are stored (shards.py).
    """

    def __init__(
        self,
        name: str,
        client: ThreadedClient,
        sleep: Callable[[float], Awaitable[None]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self.calls = TableCalls(name, client, sleep)
        self._clock = clock
        self._place = 0
        self._format = TableFormat(self.calls)

    async def probe(self) -> None:
        """Check the table's format at the start of a run, so that a missing table or permission shows now, not later.

        Raises LedgerError, also for a table of another format.
        """
        await self._format.check()

    def place(self) -> int:
        """Return a number that orders the writes of the ledger: microseconds since the epoch, but larger with each
        call.
        """
        self._place = max(self._place + 1, int(self._clock() * 1_000_000))
        return self._place

    async def get(self, name: Name) -> Item | None:
        answer = await self.calls.send("GetItem", TableName=self.name, Key=_key(name), ConsistentRead=True)
        item: Item | None = answer.get("Item")
        return item and own_name(item)

    async def get_many(self, names: Iterable[Name], *, consistent: bool = False) -> dict[Name, Item]:
        """Return the items with these names, by name. A name without an item is left out.

        consistent: True to see the newest writes.
        """
        wanted = {stored_name(name): name for name in names}
        keys = [key_of(stored) for stored in wanted]
        found: dict[Name, Item] = {}
        for start in range(0, len(keys), BATCH):
            items = await self.calls.get_batch(keys[start : start + BATCH], consistent=consistent)
            found.update({wanted[item["pk"]["S"], item["sk"]["S"]]: own_name(item) for item in items})
        return found

    async def pages(
        self, operation: str, *, largest: int | None = None, **arguments: Any
    ) -> AsyncGenerator[list[Item], None]:
        """Yield the items of a Query or a Scan, page by page, as TableCalls.pages() does."""
        async with aclosing(self.calls.pages(operation, largest=largest, **arguments)) as pages:
            async for page in pages:
                yield [own_name(item) for item in page]

    async def query(self, pk: str, first: str, *, consistent: bool = True) -> list[Item]:
        """Return the items with this pk whose sk is `first`, or comes after it. consistent: True to see the newest
        writes.
        """
        pk, first, last = stored_range(pk, first)
        values = {":pk": {"S": pk}, ":first": {"S": first}, ":last": {"S": last}}
        condition = "pk = :pk AND sk BETWEEN :first AND :last"
        reading = self.pages(
            "Query", KeyConditionExpression=condition, ExpressionAttributeValues=values, ConsistentRead=consistent
        )
        return [item async for page in reading for item in page]

    async def update(self, change: Change, *, returned: str = "NONE") -> Item:
        """Make one change by UpdateItem. Raises ConditionFailed if its condition does not hold.

        returned: ReturnValues of UpdateItem, which choose the attributes in the answer.
        """
        await self._format.begin()
        answer = await self.calls.send("UpdateItem", TableName=self.name, ReturnValues=returned, **_arguments(change))
        found: Item = answer.get("Attributes", {})
        return found

    async def update_all(self, changes: Sequence[Change]) -> None:
        """Make all changes in one transaction. Raises ConditionFailed if one of their conditions does not hold."""
        await self._format.begin()
        updates = [{"Update": {"TableName": self.name, **_arguments(change)}} for change in changes]
        await self.calls.send("TransactWriteItems", TransactItems=updates)


def _key(name: Name) -> dict[str, dict[str, str]]:
    return key_of(stored_name(name))


def _arguments(change: Change) -> dict[str, Any]:
    change.once(WHOLE_KEY, cut_key(change.name))
    return change.arguments() | {"Key": _key(change.name)}


async def in_order(items: Iterable[T], group: Callable[[T], Hashable], call: Callable[[T], Awaitable[R]]) -> list[R]:
    """Call `call` for each item, many at the same time, and return the results in the order of the items.

    Items for which `group` returns the same value are called one after the other.
    """
    groups: Mapping[Hashable, list[tuple[int, T]]] = _grouped(items, group)
    waiting = iter(groups.values())
    answers: dict[int, R] = {}

    async def work() -> None:
        for members in waiting:
            for index, item in members:
                answers[index] = await call(item)

    await together(work() for _ in range(min(THREADS, len(groups))))
    return [answers[index] for index in range(len(answers))]


def _grouped(items: Iterable[T], group: Callable[[T], Hashable]) -> Mapping[Hashable, list[tuple[int, T]]]:
    found: dict[Hashable, list[tuple[int, T]]] = defaultdict(list)
    for index, item in enumerate(items):
        found[group(item)].append((index, item))
    return found
