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
"""Number of items that one Query returns. Memory holds one page of each shard; an item takes some 8 KB."""
_COMPARED: Final = 150
"""Characters of a prefix that decide where the reading ends. Every sort key has so many of its object key."""

Group = tuple[str, list[Item]]
"""The items of one object key, after the pk that they have in a table without shards."""


async def keys_in_order(table: Table, bucket: str, prefix: str, start_after: str) -> AsyncGenerator[Group, None]:
    """Yield the items of each key that begins with `prefix` and comes after `start_after`, in key order. A few keys
    before and behind may come too: callers drop them.
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
    """Yield the items of the shard `pk` from the sort key `first` on, page by page. The last page is the first that
    ends beyond the wanted keys. beginning: with which the wanted items' pk (bucket/key) begins.
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
    """Puts the keys of one shard in order. ready: keys whose items are complete, in order.

    Keys that are too long for a sort key come in the order of their hashes, after their common beginning. They are held
    until the last of them has come, and are then sorted.
    """

    def __init__(self, pages: AsyncGenerator[list[Item], None]) -> None:
        self.ready: deque[Group] = deque()
        self._pages = pages
        self._held: list[Group] = []

    async def fill(self) -> None:
        """Read pages until a key is ready; at the end of the shard, `ready` may stay empty."""
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
