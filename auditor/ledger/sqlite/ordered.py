"""Look up the digests of a listing in a SQLite ledger: its rows are read ahead in key order, a page at a time.

The rows are stored in key order, so that a page is read from one place of the file.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from auditor.ledger.base import Ask, PassChoice
from auditor.ledger.matching import match
from auditor.ledger.sqlite.connection import blob
from auditor.ledger.sqlite.digests import RowPage
from auditor.model.object import AnyVersion

_ROWS: Final = 2
"""Largest number of rows that may be read for each object, and for each of its algorithms. With two, a page takes as
much CPU as questions about the same objects."""
_SPARE: Final = 500
"""Number of rows that may be read in vain besides."""
_FIRST_PAGE: Final = 250
_LARGEST_PAGE: Final = 2_000
"""Number of rows of a page. A row takes some 1 KB in memory."""
_GROWTH: Final = 2
_PAUSE: Final = 1_000
_LONGEST_PAUSE: Final = 64_000
_NOTHING: Final[Mapping[str, str]] = {}

ReadPage = Callable[[bytes, int], Awaitable[RowPage]]
"""A function that reads so many rows from a key on."""


class PageReader:
    """Answers from pages of rows, each as the ledger was when the page was read.

    If the pages have many more rows than objects were looked up, the next objects are asked about one by one: the
    ledger then has many objects that the listing lacks. A batch may have any order.
    """

    def __init__(self, read: ReadPage, ask: Ask) -> None:
        self._read = read
        self._ask = ask
        self._choice = PassChoice(first=0, pause=_PAUSE, most=_LONGEST_PAUSE)
        self._page: RowPage | None = None
        self._limit = _FIRST_PAGE
        self._rows = self._answered = 0

    async def known(self, refs: Sequence[AnyVersion], algorithms: Sequence[str]) -> list[Mapping[str, str]]:
        if self._page is None and not self._choice.passes(len(refs)):
            return await self._ask(refs, algorithms)
        found: list[Mapping[str, str]] = []
        page = self._page
        for index, ref in enumerate(refs):
            key = blob(ref.key)
            if page is None or not page.has(key):
                page = await self._turned(key, self._answered + index, len(algorithms))
                if page is None:
                    return found + await self._ask(refs[index:], algorithms)
            rows = page.rows.get((key, ref.etag))
            found.append(_NOTHING if rows is None else match(rows, ref, algorithms))
        self._answered += len(refs)
        return found

    async def _turned(self, key: bytes, answered: int, algorithms: int) -> RowPage | None:
        """Read and return the page from this key on; None if the pages so far had too many rows in vain.

        answered: number of objects that were answered from the pages so far.
        """
        if self._rows > _SPARE + _ROWS * answered * max(1, algorithms):
            self._choice.in_vain(answered)
            await self.close()
            return None
        self._page = None  # if the reading fails, the next batch begins anew
        self._page = await self._read(key, self._limit)
        self._rows += self._page.count
        self._limit = min(_GROWTH * self._limit, _LARGEST_PAGE)
        return self._page

    async def close(self) -> None:
        self._page, self._limit = None, _FIRST_PAGE
        self._rows = self._answered = 0
