"""Read all items of a bucket in key order: its shards are read side by side, and merged."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from itertools import groupby
from operator import itemgetter
from typing import Final

from auditor.aio.groups import together
from auditor.ledger.dynamodb.items import WHOLE_KEY, Item, partition
from auditor.ledger.dynamodb.shards import first_sort_key, partitions
from auditor.ledger.dynamodb.table import Table

PAGE: Final = 250
"""Number of items that one Query returns. Memory holds one page of each shard; an item takes some 8 KB in memory."""
_COMPARED: Final = 150
"""Number of characters of a wanted prefix that are compared with keys, to find the end of the reading. The sort key of
every item has at least this many characters of its object key."""

Group = tuple[str, list[Item]]
"""The pk that the items of one object key have in a table without shards, and these items."""


async def keys_in_order(table: Table, bucket: str, prefix: str, start_after: str) -> AsyncGenerator[Group, None]:
    """Yield the items of each key that begins with `prefix` and comes after `start_after`, in key order.

    The first and the last keys may be outside this range; the caller has to drop them.
    """
    async with AsyncExitStack() as stack:
        first, beginning = first_sort_key(prefix, start_after), partition(bucket, prefix[:_COMPARED])
        shards = []
        for pk in partitions(bucket):
            pages = _pages(table, pk, first, beginning)
            shards.append(_Shard(await stack.enter_async_context(aclosing(pages))))
        await together(shard.fill() for shard in shards)
        heap = [(shard.ready[0][0], number) for number, shard in enumerate(shards) if shard.ready]
        heapq.heapify(heap)
        while heap:
            number = heap[0][1]
            ready = shards[number].ready
            yield ready.popleft()
            if not ready:
                await shards[number].fill()
            if ready:
                heapq.heapreplace(heap, (ready[0][0], number))
            else:
                heapq.heappop(heap)


async def _pages(table: Table, pk: str, first: str, beginning: str) -> AsyncGenerator[list[Item], None]:
    """Yield the items of the shard `pk` from the sort key `first` on, page by page, up to the page that ends after the
    wanted keys.

    beginning: start of the wanted items' pk (bucket/key), as in a table without shards.
    """
    values = {":pk": {"S": pk}, ":first": {"S": first}}
    condition = "pk = :pk AND sk >= :first"
    reading = table.pages("Query", KeyConditionExpression=condition, ExpressionAttributeValues=values, Limit=PAGE)
    async with aclosing(reading):
        async for page in reading:
            yield page
            if page and not page[-1]["pk"]["S"].startswith(beginning):
                return


class _Shard:
    """Reads the keys of one shard with their items, and sorts them on the way.

    ready: sorted keys whose items are complete. Keys that are too long for a sort key come from the table in the order
    of their hashes, if they begin alike. Such keys are held back until all of them have been read, and then sorted.
    """

    def __init__(self, pages: AsyncGenerator[list[Item], None]) -> None:
        self.ready: deque[Group] = deque()
        self._pages = pages
        self._held: list[Group] = []

    async def fill(self) -> None:
        """Read pages of the shard until `ready` has a key. If `ready` stays empty, the shard has ended."""
        while not self.ready:
            page = await anext(self._pages, None)
            if page is None:
                self._release()
                return
            for pk, items in groupby(page, lambda item: str(item["pk"]["S"])):
                self._hold((pk, list(items)))

    def _hold(self, group: Group) -> None:
        if self._held:
            last_pk, last_items = self._held[-1]
            if last_pk == group[0]:
                last_items += group[1]
                return
            if WHOLE_KEY not in last_items[0] or WHOLE_KEY not in group[1][0]:
                self._release()
        self._held.append(group)

    def _release(self) -> None:
        self.ready.extend(sorted(self._held, key=itemgetter(0)))
        self._held = []
