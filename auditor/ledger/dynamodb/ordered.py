"""Read the items of a bucket in a DynamoDB ledger in key order: its shards are read side by side, and merged.

So the digests of a listing are looked up by one pass over the bucket's rows.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from auditor.aio.tasks import together
from auditor.ledger.base import Ask, HealableDigests, PassChoice
from auditor.ledger.dynamodb.items import DIGESTS, WHOLE_KEY, Item, partition
from auditor.ledger.dynamodb.table import Table, first_sort_key, partitions
from auditor.ledger.matching import LedgerRow, match
from auditor.model.object import AnyVersion

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


FIRST: Final = 1_000
"""Number of objects that are asked about before the first pass. Ten calls of BatchGetItem with 500 read units: as much
as the first pages of a pass may cost in vain."""
_PAGE: Final = 500
_LARGEST_PAGE: Final = 2_000
"""Number of items that one Query to a shard returns. A decoded item takes some 1 KB in memory."""
_ROWS: Final = 6
"""Number of rows that may be read in vain for each object. A row takes some 0.08 read units in a Query, and a
question takes half a unit (DynamoDB, read consistency: eventually consistent reads)."""
_SPARE: Final = 3_000
"""Number of rows that a pass may read in vain besides."""
_PAUSE: Final = 2_000
_LONGEST_PAUSE: Final = 64_000


class _KeyDigests(Struct, frozen=True):
    """The undamaged digests of one key. damaged: True if the key has a damaged row, for which the history may stand."""

    rows: tuple[LedgerRow, ...]
    damaged: bool


_NONE: Final = _KeyDigests((), damaged=False)


class ShardReader:
    """Reads the shards of a bucket in key order, along with the listing.

    The first objects are asked about one by one, so that a short listing reads no row of other objects. So is a part of
    the listing where the ledger has many more objects than the listing.
    """

    def __init__(self, table: Table, bucket: str, ask: Ask, *, first: int = FIRST) -> None:
        """first: number of objects that are asked about before the first pass."""
        self._table = table
        self._bucket = bucket
        self._ask = ask
        self._choice = PassChoice(first=first, pause=_PAUSE, most=_LONGEST_PAUSE)
        self._pass: _Pass | None = None

    async def known(self, refs: Sequence[AnyVersion], algorithms: Sequence[str]) -> list[Mapping[str, str]]:
        if self._pass is None and refs and self._choice.passes(len(refs)):
            self._pass = _Pass(self._table, self._bucket, refs[0].key)
        if self._pass is None or not refs or refs[0].key < self._pass.key:
            return await self._ask(refs, algorithms)
        try:
            return await self._answered(self._pass, refs, algorithms)
        except BaseException:  # of a cancelled task too: the pass may have lost its place
            await self.close()
            raise

    async def _answered(
        self, rows: _Pass, refs: Sequence[AnyVersion], algorithms: Sequence[str]
    ) -> list[Mapping[str, str]]:
        """Answer from the pass, and ask about objects that it does not decide."""
        found: list[Mapping[str, str]] = []
        open_: list[int] = []
        damaged: set[int] = set()
        for index, ref in enumerate(refs):
            digests = await rows.at(ref.key)
            if digests is None:  # too many rows in vain
                self._choice.in_vain(rows.answered)
                await self.close()
                open_ += range(index, len(refs))
                break
            if digests.damaged:
                open_.append(index)
                damaged.add(index)
            found.append(match(digests.rows, ref, algorithms))
        if open_:
            found += [{}] * (len(refs) - len(found))
            answers = await self._ask([refs[index] for index in open_], algorithms)
            for index, answer in zip(open_, answers, strict=True):
                found[index] = HealableDigests(answer) if answer and index in damaged else answer
        return found

    async def close(self) -> None:
        last, self._pass = self._pass, None
        if last is not None:
            await last.rows.aclose()


class _Pass:
    """One pass over the rows of a bucket, from a first key on.

    answered: number of objects that at() was called for. key: the last of their keys; the first key before the first
    call. rows: the rows after it.
    """

    def __init__(self, table: Table, bucket: str, first: str) -> None:
        self.answered = 0
        self.key = first
        self._digests: _KeyDigests | None = None
        self._start = len(bucket) + 1
        self.rows = keys_in_order(table, bucket, "", first, _reading(bucket))
        self._next: tuple[str, _KeyDigests] | None = None
        self._ended = False
        self._in_vain = 0

    async def at(self, key: str) -> _KeyDigests | None:
        """Move on to this key, which must not come before the last one, and return its digests.

        Return None if the pass has read too many rows in vain: rows of other objects.
        """
        if key != self.key or self._digests is None:
            if (found := await self._move(key)) is None:
                return None
            self.key, self._digests = key, found
            self._in_vain += len(found.rows)
        self.answered += 1
        self._in_vain -= 1
        return self._digests

    async def _move(self, key: str) -> _KeyDigests | None:
        while not self._ended:
            if self._next is None:
                self._next = await anext(self.rows, None)
                self._ended = self._next is None
                continue
            pk, digests = self._next
            if (at := pk[self._start :]) > key:
                break
            if at < key and self._in_vain > _SPARE + _ROWS * self.answered:
                return None
            self._next = None
            if at == key:
                return digests
            self._in_vain += len(digests.rows)
        return _NONE


def _reading(bucket: str) -> KeyReading[_KeyDigests]:
    """Return how a pass reads the keys of a bucket: their undamaged digests."""

    def decode(pk: str, items: list[Item]) -> _KeyDigests:
        key = pk[len(bucket) + 1 :]
        rows = [item.checked_row(bucket, key) for item in items if item["sk"]["S"] >= DIGESTS]
        return _KeyDigests(tuple([row for row, _ in rows]), any(damaged for _, damaged in rows))

    return KeyReading(decode, _PAGE, _LARGEST_PAGE)
