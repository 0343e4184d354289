"""Look up the digests of a listing in a DynamoDB ledger: one pass over the rows of the bucket, in key order."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from auditor.ledger.base import HealableDigests
from auditor.ledger.dynamodb.items import DIGESTS, Item, checked_row
from auditor.ledger.dynamodb.merging import KeyReading, keys_in_order
from auditor.ledger.dynamodb.table import Table
from auditor.ledger.matching import LedgerRow, match
from auditor.ledger.ordered import Ask, PassChoice
from auditor.model.object import AnyVersion

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
        if not refs:
            return await self._ask(refs, algorithms)
        if self._pass is None:
            if not self._choice.passes(len(refs)):
                return await self._ask(refs, algorithms)
            self._pass = _Pass(self._table, self._bucket, refs[0].key)
        elif self._pass.is_behind(refs[0].key):
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
        rows, self._pass = self._pass, None
        if rows is not None:
            await rows.close()


class _Pass:
    """One pass over the rows of a bucket, from a first key on.

    answered: number of objects that at() was called for.
    """

    def __init__(self, table: Table, bucket: str, first: str) -> None:
        self.answered = 0
        self._key = first
        self._digests: _KeyDigests | None = None
        self._start = len(bucket) + 1
        self._rows: AsyncGenerator[tuple[str, _KeyDigests], None] = keys_in_order(
            table, bucket, "", first, _reading(bucket)
        )
        self._next: tuple[str, _KeyDigests] | None = None
        self._ended = False
        self._in_vain = 0

    def is_behind(self, key: str) -> bool:
        return key < self._key

    async def at(self, key: str) -> _KeyDigests | None:
        """Move on to this key, which must not come before the last one, and return its digests.

        Return None if the pass has read too many rows in vain: rows of other objects.
        """
        if key != self._key or self._digests is None:
            if (found := await self._move(key)) is None:
                return None
            self._key, self._digests = key, found
            self._in_vain += len(found.rows)
        self.answered += 1
        self._in_vain -= 1
        return self._digests

    async def _move(self, key: str) -> _KeyDigests | None:
        while not self._ended:
            if self._next is None:
                self._next = await anext(self._rows, None)
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

    async def close(self) -> None:
        await self._rows.aclose()


def _reading(bucket: str) -> KeyReading[_KeyDigests]:
    """Return how a pass reads the keys of a bucket: their undamaged digests."""

    def decode(pk: str, items: list[Item]) -> _KeyDigests:
        key = pk[len(bucket) + 1 :]
        rows = [checked_row(bucket, key, item) for item in items if item["sk"]["S"] >= DIGESTS]
        return _KeyDigests(tuple([row for row, _ in rows]), any(damaged for _, damaged in rows))

    return KeyReading(decode, _PAGE, _LARGEST_PAGE)
