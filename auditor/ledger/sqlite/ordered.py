"""Look up the digests of a listing in a SQLite ledger: one range of its rows for each batch of objects.

The rows are stored in key order, so that a range is read from one place of the file.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from typing import Final

from auditor.ledger.matching import match
from auditor.ledger.ordered import Ask, PassChoice
from auditor.ledger.sqlite.connection import blob
from auditor.ledger.sqlite.digests import Found
from auditor.model.object import AnyVersion

_ROWS: Final = 2
"""Largest number of rows that a range may have for each object of the batch, and for each of its algorithms. With two,
a range takes as much CPU as questions about the same objects."""
_PAUSE: Final = 1_000
_LONGEST_PAUSE: Final = 64_000

LookThrough = Callable[[Set[tuple[bytes, str]], int], Awaitable[Found | None]]
"""A function that returns the digests of pairs of key and ETag from one range of rows; None if the range has more rows
than a given number."""


class RangeReader:
    """Reads for each batch the rows from its first key to its last one, as they are at this moment.

    If that range has many more rows than the batch has objects, the objects are asked about one by one: the ledger then
    has many objects that the listing lacks. A batch may have any order.
    """

    def __init__(self, look_through: LookThrough, ask: Ask) -> None:
        self._look_through = look_through
        self._ask = ask
        self._choice = PassChoice(first=0, pause=_PAUSE, most=_LONGEST_PAUSE)
        self._answered = 0

    async def known(self, refs: Sequence[AnyVersion], algorithms: Sequence[str]) -> list[Mapping[str, str]]:
        if not refs or not self._choice.passes(len(refs)):
            return await self._ask(refs, algorithms)
        pairs = [(blob(ref.key), ref.etag) for ref in refs]
        found = await self._look_through(frozenset(pairs), _ROWS * len(refs) * max(1, len(algorithms)))
        if found is None:
            self._choice.in_vain(self._answered)
            self._answered = 0
            return await self._ask(refs, algorithms)
        self._answered += len(refs)
        return [match(found.get(pair, ()), ref, algorithms) for pair, ref in zip(pairs, refs, strict=True)]

    async def close(self) -> None:
        pass
