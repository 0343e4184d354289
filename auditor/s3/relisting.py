"""List a target again around single objects, to see if they are still there as an earlier run listed them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from auditor.errors import CallFailed
from auditor.model.object import ObjectRef
from auditor.model.target import Target
from auditor.s3.calls import Caller
from auditor.s3.engines.base import Engine, ListQuery
from auditor.s3.listing import ask_page

_PAGES: Final = 4
"""Number of pages that are kept. Objects are asked about roughly in the order of their keys."""


class _Listing(Struct, frozen=True):
    """One page: the keys after `after` up to `last`, or all further keys if `last` is None."""

    at: float
    after: str | None
    last: str | None
    refs: Mapping[tuple[str, str | None], ObjectRef]

    def covers(self, key: str) -> bool:
        return (self.after is None or self.after < key) and (self.last is None or key < self.last)


class Relisting:
    """Says if objects are listed as an earlier run listed them.

    A page of the listing serves all objects on it that were asked about before it was listed: objects that lie close
    together and are read at once take one call.
    """

    def __init__(self, engine: Engine, caller: Caller, target: Target) -> None:
        self._engine = engine
        self._caller = caller
        self._target = target
        self._pages: deque[_Listing] = deque(maxlen=_PAGES)
        self._listing = asyncio.Lock()

    async def has(self, ref: ObjectRef, after: str | None) -> bool:
        """True if the listing, begun after this call, has this version with the same ETag and time. False if it was not
        seen, or could not be listed. after: a key before that of the object, after which the page begins; None for the
        first key. Raises ListingError for a listing that cannot be right.
        """
        asked = self._caller.clock()
        async with self._listing:
            page = self._page_of(ref.key, asked) or await self._list(after)
        if page is None or not page.covers(ref.key):
            return False
        now = page.refs.get((ref.key, ref.version_id))
        return now is not None and (now.etag, now.last_modified) == (ref.etag, ref.last_modified)

    def _page_of(self, key: str, asked: float) -> _Listing | None:
        return next((page for page in self._pages if page.at > asked and page.covers(key)), None)

    async def _list(self, after: str | None) -> _Listing | None:
        target, at = self._target, self._caller.clock()
        query = ListQuery(target.prefix, after, target.versions)
        try:
            # The calls of the object have room for it: their number was checked before the object was begun.
            page = await ask_page(self._engine, self._caller, query, None, beyond_budget=True)
        except CallFailed:
            return None
        last = None
        if page.next is not None:  # versions of the last key may be on the next page
            last = page.last if target.versions else f"{page.last}\0"
        found = _Listing(at, after, last, {(ref.key, ref.version_id): ref for ref in page.refs})
        self._pages.append(found)
        return found
