"""Read the shards of a bucket side by side, and merge their keys into one order."""

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
"""Items of a Query. Memory holds one page of each shard, and an item has some 8 KB in memory."""
_COMPARED: Final = 150
"""Letters of a prefix that decide where a shard ends: the sort key has these of every key."""

Group = tuple[str, list[Item]]
"""The pk of a key's items in a table without shards, and the items."""


async def keys_in_order(table: Table, bucket: str, prefix: str, start_after: str) -> AsyncGenerator[Group, None]:
    """Yield the items of each key below the prefix and after `start_after`; a few other keys may come too."""
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
    """Yield the items of one shard from the sort key `first` on, and at least all whose keys begin with `beginning`."""
    values = {":pk": {"S": pk}, ":first": {"S": first}}
    condition = "pk = :pk AND sk >= :first"
    reading = table.pages("Query", KeyConditionExpression=condition, ExpressionAttributeValues=values, Limit=PAGE)
    async with aclosing(reading):
        async for page in reading:
            yield page
            if page and not page[-1]["pk"]["S"].startswith(beginning):
                return


class _Shard:
    """The keys of one shard. ready: those that are complete and in order.

    Keys that are too long for a sort key come in the order of their hashes, behind the beginning that they share. They
    wait for the last of them.
    """

    def __init__(self, pages: AsyncGenerator[list[Item], None]) -> None:
        self.ready: deque[Group] = deque()
        self._pages = pages
        self._held: list[Group] = []

    async def fill(self) -> None:
        """Read until a key is ready, or to the end."""
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
