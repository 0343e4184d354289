"""Read and write the items of one DynamoDB table, by their names in a table without shards: in batches and pages."""

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
from auditor.ledger.dynamodb.layout import Layout
from auditor.ledger.dynamodb.shards import cut_key, is_left_over, own_name, stored_name, stored_range

T = TypeVar("T")
R = TypeVar("R")


class Table:
    """One DynamoDB table, called by at most THREADS calls at a time.

    Callers use the names that items have in a table without shards. This class converts them to the names that a table
    with shards stores.
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
        self.layout = Layout(self.calls, clock)

    @property
    def sharded(self) -> bool:
        return self.layout.sharded

    async def probe(self, *, shards: bool = False) -> None:
        """Read the table's layout at the start of a run, so that a missing table or permission shows now, not later.

        shards: True to give an empty table shards now. Raises LedgerError, also if a newer release has written the
        table, or if shards are wanted in a table that has items but no shards.
        """
        await self.layout.read()
        if shards:
            await self.layout.begin_shards()

    def place(self) -> int:
        """Return a number that orders the writes of the ledger: microseconds since the epoch, but larger with each
        call.
        """
        self._place = max(self._place + 1, int(self._clock() * 1_000_000))
        return self._place

    async def get(self, name: Name) -> Item | None:
        answer = await self.calls.send("GetItem", TableName=self.name, Key=self._key(name), ConsistentRead=True)
        item: Item | None = answer.get("Item")
        return item and self._own([item])[0]

    async def get_many(self, names: Iterable[Name], *, consistent: bool = False) -> dict[Name, Item]:
        """Return the items with these names, by name. A name without an item is left out.

        consistent: True to see the newest writes.
        """
        wanted = {self._stored(name): name for name in names}
        keys = [key_of(stored) for stored in wanted]
        found: dict[Name, Item] = {}
        for start in range(0, len(keys), BATCH):
            items = await self.calls.get_batch(keys[start : start + BATCH], consistent=consistent)
            names = [wanted[item["pk"]["S"], item["sk"]["S"]] for item in items]
            found.update(zip(names, self._own(items), strict=True))
        return found

    async def pages(
        self, operation: str, *, largest: int | None = None, **arguments: Any
    ) -> AsyncGenerator[list[Item], None]:
        """Yield the items of a Query or a Scan, page by page, as TableCalls.pages() does.

        A table that was given shards keeps its earlier rows beside them; they are left out.
        """
        mixed = self.sharded and operation == "Scan"
        async with aclosing(self.calls.pages(operation, largest=largest, **arguments)) as pages:
            async for page in pages:
                yield self._own([item for item in page if not is_left_over(item)] if mixed else page)

    async def query(
        self, pk: str, first: str, last: str | None = None, *, pages: int | None = None, **arguments: Any
    ) -> list[Item]:
        """Return the items with this pk whose sk is from `first` to `last`. If `last` is None, return all items from
        `first` on.

        pages: largest number of pages to read; None to read all.
        """
        if self.sharded:
            pk, first, last = stored_range(pk, first, last)
        values = {":pk": {"S": pk}, ":first": {"S": first}} | arguments.pop("ExpressionAttributeValues", {})
        condition = "pk = :pk AND sk >= :first"
        if last is not None:
            condition, values = "pk = :pk AND sk BETWEEN :first AND :last", values | {":last": {"S": last}}
        found: list[Item] = []
        reading = self.pages("Query", KeyConditionExpression=condition, ExpressionAttributeValues=values, **arguments)
        async with aclosing(reading):
            async for page in reading:
                found += page
                pages = None if pages is None else pages - 1
                if pages == 0:
                    break
        return found

    async def update(self, change: Change, *, returned: str = "NONE") -> Item:
        """Make one change by UpdateItem. Raises ConditionFailed if its condition does not hold.

        returned: ReturnValues of UpdateItem, which choose the attributes in the answer.
        """
        await self.layout.declare()
        answer = await self.calls.send(
            "UpdateItem", TableName=self.name, ReturnValues=returned, **self._arguments(change)
        )
        found: Item = answer.get("Attributes", {})
        return found

    async def update_all(self, changes: Sequence[Change]) -> None:
        """Make all changes in one transaction. Raises ConditionFailed if one of their conditions does not hold."""
        await self.layout.declare()
        updates = [{"Update": {"TableName": self.name, **self._arguments(change)}} for change in changes]
        await self.calls.send("TransactWriteItems", TransactItems=updates)

    def _stored(self, name: Name) -> Name:
        return stored_name(name) if self.sharded else name

    def _key(self, name: Name) -> dict[str, dict[str, str]]:
        return key_of(self._stored(name))

    def _own(self, items: list[Item]) -> list[Item]:
        return [own_name(item) for item in items] if self.sharded else items

    def _arguments(self, change: Change) -> dict[str, Any]:
        if self.sharded:
            change.once(WHOLE_KEY, cut_key(change.name))
        return change.arguments() | {"Key": self._key(change.name)}


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
