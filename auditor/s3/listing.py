"""List a target page by page, in the order of the keys, within the target's range of keys. Each page is checked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from functools import partial
from typing import Final, TypeVar

from msgspec import Struct

from auditor.aio.stop import Stop
from auditor.aws.failures import is_throttle, is_transient, is_web_page, own_words
from auditor.errors import BucketError, CallFailed, ListingError
from auditor.model.object import Evidence, ObjectRef
from auditor.model.reuse import KnownFacts
from auditor.model.target import LONGEST_KEY, Target
from auditor.s3.calls import LIMITS, UNREADABLE, Caller
from auditor.s3.engines.base import Engine, ListQuery, Page, Position
from auditor.text import visible

T = TypeVar("T")
_SIZES: Final = range(2**63)
_SHOWN: Final = 100
"""Number of characters that an error shows of a longer key."""
_UNUSABLE: Final = frozenset({"ConnectionError", "Timeout", "BrokenReply", UNREADABLE})
"""Codes of calls without a usable answer."""
EMPTY_PAGES: Final = 1000
"""Number of empty pages in a row after which the listing fails. S3 may send some empty pages after many objects were
deleted."""
_FEW: Final = 100
"""Entries of a page in a search for one object: the object's versions, and the key after them."""


class Listed(Struct, frozen=True):
    """One step of the listing: a listed object, or a delete marker (then ref is None).

    delete_markers: number of delete markers after the step before, up to and including this step. known: the facts of
    the object if they are known by now, so that no call is needed. facts: those that a source other than a call knows,
    so that only the others are asked; None if there are none.
    """

    key: str
    ref: ObjectRef | None
    delete_markers: int = 0
    known: Evidence | None = None
    facts: KnownFacts | None = None


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
        if page.next is None or target.beyond(page.last):
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

    Return True if the same version is still listed, with the same ETag. Raises CallFailed and ListingError.
    """
    query = ListQuery(ref.key, None, ref.version_id is not None, page_size=_FEW)
    position: Position | None = None
    while True:
        page = await ask_page(engine, caller, query, position)
        if any((one.key, one.version_id, one.etag) == (ref.key, ref.version_id, ref.etag) for one in page.refs):
            return True
        beyond = any(one.key != ref.key for one in page.refs)
        if beyond or page.next is None or page.next == position:
            return False
        position = page.next


class _Order:
    """Checks that the server lists keys in order from page to page. Without the order, key ranges and resumed runs
    would miss or repeat objects.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._last = ""
        self._positions: set[Position] = set()  # of the pages since the last new key
        self._empty = 0

    def check(self, page: Page) -> None:
        """Raise ListingError if the page does not follow the page before: its first key comes too early, the server
        repeats pages, or too many pages in a row are empty.
        """
        self._empty = 0 if page.refs or page.delete_markers else self._empty + 1
        if page.next in self._positions or self._empty > EMPTY_PAGES:
            raise ListingError(f"the listing of {visible(self._target.uri)} does not advance: the server repeats pages")
        for key in (*(ref.key for ref in page.refs[:1]), *page.delete_markers[:1]):
            if key < self._last or (key == self._last and not self._target.versions):
                raise _refused(self._target.uri, key, OUT_OF_ORDER)
        if page.last > self._last:
            self._last = page.last
            self._positions.clear()
        if page.next is not None:
            self._positions.add(page.next)


async def listed_page(
    engine: Engine, caller: Caller, target: Target, query: ListQuery, position: Position | None
) -> Page:
    """Return one page of the listing. Raises BucketError if the call fails, ListingError for a page that cannot be
    right, and CallFailed (MaxCalls) if --max-calls allows no further page.
    """
    try:
        # Versions are listed to the end of a key even past --max-calls: a resumed run starts after the key.
        return await ask_page(engine, caller, query, position, beyond_budget=target.versions)
    except CallFailed as failure:
        if failure.code in LIMITS:
            raise
        said = failure.action if failure.code == UNREADABLE else f"{failure.action}: {failure.code}"
        raise BucketError(f"the listing of {visible(target.uri)} failed ({said}): {_fix(failure, query)}") from failure


def _fix(failure: CallFailed, query: ListQuery) -> str:
    if is_web_page(failure.headers) and not is_transient(failure):
        return "this is not an S3 server (text/html): check --endpoint-url"
    if failure.status == 403:
        return f"grant {'s3:ListBucketVersions' if query.versions else 's3:ListBucket'}{own_words('S3', failure)}"
    if failure.code == "Malformed":
        return f"the server's answer cannot be relied on ({failure.message})"
    if failure.code in _UNUSABLE:
        fault = "the answer is truncated, or is not XML" if failure.code == UNREADABLE else "no whole answer came"
        return f"{fault}: check the server and the network, and try again"
    return "try again later, with a lower --max-rate" if is_throttle(failure) else "try again later"


async def ask_page(
    engine: Engine, caller: Caller, query: ListQuery, position: Position | None, *, beyond_budget: bool = False
) -> Page:
    """Return one page of a listing, after its check. Every listing of a bucket passes here.

    beyond_budget: True to list even if --max-calls is used up. Raises CallFailed, and ListingError for a page that
    cannot be right.
    """
    attempt = partial(engine.list_page, query, position)
    page = await caller.call("list", query.action, attempt, beyond_budget=beyond_budget)
    where = f"s3://{caller.bucket}/{query.prefix}"
    _check_keys((ref.key for ref in page.refs), query, where, twice=query.versions)
    _check_keys(page.delete_markers, query, where, twice=True)
    for ref in page.refs:
        if ref.size not in _SIZES:
            raise _refused(where, ref.key, f"with {ref.size} bytes, and no object has so many")
    return page


OUT_OF_ORDER: Final = "not in the order of its keys"


def _check_keys(keys: Iterable[str], query: ListQuery, where: str, *, twice: bool) -> None:
    """Raise ListingError for a key that is too long, not below the prefix, or out of order. twice: True if a key may
    come twice, as the versions of a key do.
    """
    prefix, before = query.prefix, ""
    for key in keys:
        if 4 * len(key) > LONGEST_KEY and (size := len(key.encode("utf-8", "surrogatepass"))) > LONGEST_KEY:
            raise _refused(where, f"{key[:_SHOWN]}..", f"a key of {size:,} bytes: the limit is {LONGEST_KEY:,}")
        if not key.startswith(prefix):
            raise _refused(where, key, "which does not begin with the prefix that was asked for")
        if key < before or (key == before and not twice):
            raise _refused(where, key, OUT_OF_ORDER)
        before = key


def _refused(where: str, key: str, why: str) -> ListingError:
    return ListingError(f"the listing of {visible(where)} names {visible(key)}, {why}: it proves nothing")


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
