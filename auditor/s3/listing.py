"""List a target page by page, in the order of the keys, within the target's range of keys."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from itertools import pairwise
from typing import Final, TypeVar

from auditor.aio.stop import Stop
from auditor.errors import BucketError, CallFailed
from auditor.model.object import Evidence, ObjectRef
from auditor.model.prior import Prior
from auditor.model.record import record
from auditor.model.target import Target
from auditor.s3.calls import LIMITS, Caller
from auditor.s3.engines.base import Engine, ListQuery, Page, Position

T = TypeVar("T")
EMPTY_PAGES: Final = 1000
"""Number of empty pages in a row after which the listing fails. S3 may send some empty pages after many objects were
deleted."""
_FEW: Final = 100
"""Entries of a page in a search for one object: the object's versions, and the key after them."""


@record()
class Listed:
    """One step of the listing: a listed object, or a delete marker (then ref is None).

    delete_markers: number of delete markers after the step before, up to and including this step. known: the facts of
    the object if they are known by now, so that no call is needed. prior: those facts of an earlier source that may be
    used, so that only the others are asked; None if there are none. unreported: True if the audit uses an S3 Inventory
    report, and the report does not tell the stored ACL of the object as it is listed.
    """

    key: str
    ref: ObjectRef | None
    delete_markers: int = 0
    known: Evidence | None = None
    prior: Prior | None = None
    unreported: bool = False


async def pages(engine: Engine, caller: Caller, target: Target) -> AsyncGenerator[list[Listed], None]:
    """Yield the pages of the target's listing, each as a list of steps. Raises BucketError if the listing fails.

    Raises CallFailed (MaxCalls) if --max-calls allows no further page. Keys up to start_after are dropped here too,
    because some servers ignore this parameter of the request.
    """
    query = ListQuery(target.prefix, target.start_after, target.versions)
    position: Position | None = None
    order = _Order(target)
    while True:
        page = await listed_page(engine, caller, target, query, position)
        order.check(page)
        yield list(_steps(page, target))
        if page.next is None or _past_the_end(page, target):
            return
        position = page.next


async def within_limit(pages: AsyncGenerator[T, None], stop: Stop) -> AsyncGenerator[T, None]:
    """Yield the pages of a listing. If --max-calls allows no further page, set `stop` and end."""
    async with aclosing(pages):
        try:
            async for page in pages:
                yield page
        except CallFailed as failure:
            stop.set(f"the limit of {LIMITS.get(failure.code, '--max-calls')} was reached ({failure.code})")


async def listed_still(engine: Engine, caller: Caller, ref: ObjectRef) -> bool:
    """List the object's key again.

    Return True if the same version is still listed, with the same ETag. Raises CallFailed.
    """
    query = ListQuery(ref.key, None, ref.version_id is not None, page_size=_FEW)
    action = "ListObjectVersions" if query.versions else "ListObjectsV2"
    position: Position | None = None
    while True:
        page = await caller.call("list", action, partial(engine.list_page, query, position))
        if any((one.key, one.version_id, one.etag) == (ref.key, ref.version_id, ref.etag) for one in page.refs):
            return True
        beyond = any(one.key != ref.key for one in page.refs)
        if beyond or page.next is None or page.next == position:
            return False
        position = page.next


class _Order:
    """Checks that the server lists keys in order. Without the order, key ranges and resumed runs would miss or repeat
    objects.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._last = ""
        self._positions: set[Position] = set()  # of the pages since the last new key
        self._empty = 0

    def check(self, page: Page) -> None:
        """Raise BucketError if the page shows that the listing cannot be relied on: its keys are out of order, the
        server repeats pages, or too many pages in a row are empty.
        """
        keys = [ref.key for ref in page.refs]
        self._empty = 0 if keys or page.delete_markers else self._empty + 1
        if page.next in self._positions or self._empty > EMPTY_PAGES:
            raise BucketError(f"the listing of {self._target.uri} does not move on: the server repeats its pages")
        if self._goes_back(keys) or self._goes_back(page.delete_markers):
            raise BucketError(f"the listing of {self._target.uri} is not in the order of its keys: it proves nothing")
        last = max((*keys[-1:], *page.delete_markers[-1:]), default="")
        if last > self._last:
            self._last = last
            self._positions.clear()
        if page.next is not None:
            self._positions.add(page.next)

    def _goes_back(self, keys: Sequence[str]) -> bool:
        """True if the keys are out of order. Only a listing of versions may have a key twice."""
        pairs = pairwise([self._last, *keys])
        return any(after < before if self._target.versions else after <= before for before, after in pairs)


async def listed_page(
    engine: Engine, caller: Caller, target: Target, query: ListQuery, position: Position | None
) -> Page:
    """Return one page of the listing. Raises BucketError if the call fails, and CallFailed (MaxCalls) if --max-calls
    allows no further one.
    """
    action = "ListObjectVersions" if target.versions else "ListObjectsV2"
    permission = "s3:ListBucketVersions" if target.versions else "s3:ListBucket"
    try:
        # Versions are listed to the end of a key even past --max-calls: a resumed run starts after the key.
        return await caller.call(
            "list", action, lambda: engine.list_page(query, position), beyond_budget=target.versions
        )
    except CallFailed as failure:
        if failure.code in LIMITS:
            raise
        fix = f"grant {permission}" if failure.status == 403 else "try again later, with a lower --max-rate"
        if failure.code == "Malformed":
            fix = f"the server's answer cannot be relied on ({failure.message})"
        raise BucketError(f"the listing of {target.uri} failed ({action}: {failure.code}): {fix}") from failure


def _past_the_end(page: Page, target: Target) -> bool:
    last = max((*(ref.key for ref in page.refs[-1:]), *page.delete_markers[-1:]), default=None)
    return last is not None and target.beyond(last)


def _steps(page: Page, target: Target) -> Iterator[Listed]:
    """Yield the page's steps in key order.

    A delete marker counts in the step of the first object at or after its key. Delete markers after the last object get
    a step of their own.
    """
    markers = filter(target.covers, page.delete_markers)
    marker = next(markers, None)
    for ref in page.refs:
        if not target.covers(ref.key):
            continue
        passed = 0
        while marker is not None and marker <= ref.key:
            passed += 1
            marker = next(markers, None)
        yield Listed(ref.key, ref, passed)
    while marker is not None:
        yield Listed(marker, None, 1)
        marker = next(markers, None)
