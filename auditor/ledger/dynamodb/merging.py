"""Read the items of a bucket in key order: its shards are read side by side, and merged."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, aclosing
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from auditor.aio.groups import together
from auditor.ledger.dynamodb.items import WHOLE_KEY, Item, partition
from auditor.ledger.dynamodb.shards import first_sort_key, partitions
from auditor.ledger.dynamodb.table import Table

_FIRST_AT_ONCE: Final = 4
"""Number of shards whose first pages are read at the same time, so that few pages are in memory undecoded."""
_COMPARED: Final = 150
"""Number of characters of a wanted prefix that are compared with keys, to find the end of the reading. The sort key of
every item has at least this many characters of its object key."""

T = TypeVar("T")


class KeyReading(Struct, Generic[T], frozen=True):
    """The way in which keys are read: the value of each key, and how many items at once.

    decode: makes the wanted value of a key's items; it is called with the pk of their plain names.
    Memory holds one page of values of each shard. page, largest_page: number of items that the first Query to a shard
    returns, and up to which the number grows.
    """

    decode: Callable[[str, list[Item]], T]
    page: int
    largest_page: int


async def keys_in_order(
    table: Table, bucket: str, prefix: str, start_after: str, reading: KeyReading[T]
) -> AsyncGenerator[tuple[str, T], None]:
    """Yield the pk and the value of each key that begins with `prefix` and comes after `start_after`, in key order.

    The pk is that of the plain names. The first and the last keys may be outside this range (the first one may be
    `start_after` itself); the caller has to drop them.
    """
    async with AsyncExitStack() as stack:
        first, beginning = first_sort_key(prefix, start_after), partition(bucket, prefix[:_COMPARED])
        shards = []
        for pk in partitions(bucket):
            pages = _pages(table, pk, first, beginning, reading)
            shards.append(_Shard(await stack.enter_async_context(aclosing(pages)), reading.decode))
        permits = asyncio.Semaphore(_FIRST_AT_ONCE)
        await together(_begin(shard, permits) for shard in shards)
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


async def _begin(shard: _Shard[Any], permits: asyncio.Semaphore) -> None:
    async with permits:
        await shard.fill()


async def _pages(
    table: Table, pk: str, first: str, beginning: str, reading: KeyReading[Any]
) -> AsyncGenerator[list[Item], None]:
    """Yield the items of the shard `pk` from the sort key `first` on, page by page, up to the page that ends after the
    wanted keys.

    beginning: start of the wanted items' plain pk (bucket/key).
    """
    values = {":pk": {"S": pk}, ":first": {"S": first}}
    pages = table.pages(
        "Query",
        largest=reading.largest_page,
        KeyConditionExpression="pk = :pk AND sk >= :first",
        ExpressionAttributeValues=values,
        Limit=reading.page,
    )
    async with aclosing(pages):
        async for page in pages:
            yield page
            if page and not page[-1]["pk"]["S"].startswith(beginning):
                return


class _Shard(Generic[T]):
    """Reads the keys of one shard, and sorts them on the way.

    ready: sorted keys whose items are complete, with their values. Keys that are too long for a sort key come from the
    table in the order of their hashes, if they begin alike. Such keys are held back until all of them have been read,
    and then sorted.
    """

    def __init__(self, pages: AsyncGenerator[list[Item], None], decode: Callable[[str, list[Item]], T]) -> None:
        self.ready: deque[tuple[str, T]] = deque()
        self._pages = pages
        self._decode = decode
        self._held: list[tuple[str, list[Item]]] = []

    async def fill(self) -> None:
        """Read pages of the shard until `ready` has a key. If `ready` stays empty, the shard has ended."""
        while not self.ready:
            page = await anext(self._pages, None)
            if page is None:
                self._release()
                return
            for pk, items in groupby(page, lambda item: str(item["pk"]["S"])):
                self._hold(pk, list(items))

    def _hold(self, pk: str, items: list[Item]) -> None:
        if self._held:
            last_pk, last_items = self._held[-1]
            if last_pk == pk:
                last_items += items
                return
            if WHOLE_KEY not in last_items[0] or WHOLE_KEY not in items[0]:
                self._release()
        self._held.append((pk, items))

    def _release(self) -> None:
        self.ready.extend((pk, self._decode(pk, items)) for pk, items in sorted(self._held, key=itemgetter(0)))
        self._held = []
