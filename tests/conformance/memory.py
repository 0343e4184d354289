"""An S3 in memory: an engine for tests, with the objects that the tests put there."""

from __future__ import annotations

import asyncio
import hashlib
from bisect import bisect_left
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec.structs import fields, replace

from auditor.errors import CallFailed
from auditor.model.object import Acl, Evidence, Grant, Head, ObjectRef
from auditor.s3.checksums import s3_digests
from auditor.s3.engines.base import Body, ListQuery, Page, Position, Span
from auditor.s3.storage_class import ARCHIVED_CLASSES

OWNER: Final = "a0" * 32
MODIFIED: Final = "2026-01-02T03:04:05Z"

Hook = Callable[[str, str], Awaitable[None]]
"""Awaited before each call is answered, with "list", "acl", "head" or "get" and the key ("" of a listing).

It may wait, count, or raise CallFailed.
"""


@dataclass(slots=True)
class MemoryObject:
    """An object version, and the answers to the calls for it."""

    ref: ObjectRef
    acl: Acl
    head: Head
    body: bytes = b""


Entry = MemoryObject | ObjectRef | str
"""An object version, a ref from whose fields the version's facts follow, or the key of a delete marker."""


@dataclass(slots=True)
class MemoryBody:
    """A body in memory. breaks_at: bytes after which the connection breaks. largest: bytes of the largest read."""

    data: bytes
    length: int
    etag: str = "etag"
    breaks_at: int | None = None
    largest: int = 0
    position: int = 0
    stored: Mapping[str, str] = field(default_factory=dict)

    async def readinto(self, buffer: memoryview) -> int:
        end = len(self.data) if self.breaks_at is None else min(self.breaks_at, len(self.data))
        piece = self.data[self.position : min(end, self.position + len(buffer))]
        buffer[: len(piece)] = piece
        self.position += len(piece)
        self.largest = max(self.largest, len(piece))
        await asyncio.sleep(0)
        if len(piece) < len(buffer) and end == self.breaks_at:
            failure = CallFailed("GetObject", "ConnectionError")
            failure.read = len(piece)
            raise failure
        return len(piece)

    def of(self, span: Span | None) -> MemoryBody:
        """Return this body, or a span of it. Raises CallFailed for a span beyond its end."""
        if span is None:
            return self
        if span.first >= len(self.data):
            raise CallFailed("GetObject", "InvalidRange", 416)
        data = self.data[span.first : None if span.last is None else span.last + 1]
        return MemoryBody(data, len(data), self.etag)


async def _no_hook(action: str, key: str) -> None:
    await asyncio.sleep(0)


class MemoryEngine:
    """An engine of one bucket in memory, which lists its entries in the order of `entries`.

    page_size: largest number of entries on a page. hook: may be replaced at any time. asked: action and key of every
    call. checksums: for each HEAD, True if it asked for checksums. peak: most object calls at once. tasks: most asyncio
    tasks during an object call. idle: the last argument of keep_idle.
    """

    def __init__(self, entries: Iterable[Entry] = (), *, page_size: int = 1000, hook: Hook = _no_hook) -> None:
        self.entries: list[MemoryObject | str] = [_object(one) for one in entries]
        self.page_size = page_size
        self.hook = hook
        self._versioned = False
        self.open_connections = 0
        self.idle: int | None = None
        self.asked: list[tuple[str, str]] = []
        self.checksums: list[bool] = []
        self.in_flight = 0
        self.peak = 0
        self.tasks = 0

    def put(self, key: str, body: bytes = b"", *, acl: Acl | None = None, **members: Any) -> ObjectRef:
        """Store an object as the newest version of its key. members: fields of its Head."""
        older = [entry for entry in self.entries if _key(entry) == key]
        version_id = f"version-{len(self.entries) + 1}" if self._versioned else None
        etag = hashlib.md5(body, usedforsecurity=False).hexdigest()
        head = Head(etag=etag, content_length=len(body), last_modified=MODIFIED, content_type="text/plain")
        head = replace(head, version_id=version_id, **members)
        acl = acl or _private(OWNER)
        ref = ObjectRef(
            key,
            head.etag,
            len(body),
            MODIFIED,
            version_id,
            storage_class=head.storage_class or "STANDARD",
            owner=acl.owner,
            checksum_algorithms=tuple(name[9:].upper() for name in _CHECKSUMS if getattr(head, name)),
            checksum_type=head.checksum_type,
        )
        self._place(key, MemoryObject(ref, acl, head, body), older if self._versioned else [])
        return ref

    def delete(self, key: str) -> None:
        """Remove the object, or put a delete marker before its versions."""
        older = [entry for entry in self.entries if _key(entry) == key]
        if self._versioned:
            self._place(key, key, older)
        else:
            self.entries = [entry for entry in self.entries if _key(entry) != key]

    def keep_versions(self) -> None:
        """From now on `put` keeps the older versions and `delete` leaves a marker; objects so far are null versions."""
        self._versioned = True
        for entry in self.entries:
            if isinstance(entry, MemoryObject):
                entry.ref = replace(entry.ref, version_id="null")

    def _place(self, key: str, newest: MemoryObject | str, older: Sequence[MemoryObject | str]) -> None:
        for one in older:
            if isinstance(one, MemoryObject):
                one.ref = replace(one.ref, is_latest=False)
        others = [entry for entry in self.entries if _key(entry) != key]
        at = bisect_left(others, key, key=_key)
        self.entries = [*others[:at], newest, *older, *others[at:]]

    def find(self, key: str, version_id: str | None = None) -> MemoryObject | None:
        """Return the object version (None: the latest one); None if there is none."""
        found = (entry for entry in self.entries if isinstance(entry, MemoryObject) and entry.ref.key == key)
        if version_id is None:
            return next((one for one in found if one.ref.is_latest), None)
        return next((one for one in found if version_id == (one.ref.version_id or "null")), None)

    def count(self, action: str) -> int:
        """Return how often the action was called."""
        return sum(1 for asked, _ in self.asked if asked == action)

    def keep_idle(self, connections: int) -> None:
        self.idle = connections

    async def list_page(self, query: ListQuery, position: Position | None) -> Page:
        self.asked.append(("list", ""))
        await self.hook("list", "")
        start = 0 if position is None or position.token is None else int(position.token)
        matching = [entry for entry in self.entries if _matches(query, entry)]
        end = start + min(self.page_size, query.page_size)
        shown = matching[start:end]
        return Page(
            tuple(_listed(entry.ref, query) for entry in shown if isinstance(entry, MemoryObject)),
            Position(token=str(end)) if end < len(matching) else None,
            tuple(entry for entry in shown if isinstance(entry, str)),
        )

    async def get_acl(self, key: str, version_id: str | None) -> Acl:
        return (await self._object_call("acl", "GetObjectAcl", key, version_id)).acl

    async def head(self, key: str, version_id: str | None, *, checksum: bool) -> Head:
        self.checksums.append(checksum)
        head = (await self._object_call("head", "HeadObject", key, version_id)).head
        return head if checksum else replace(head, **_NO_CHECKSUMS)

    @asynccontextmanager
    async def get(
        self, key: str, version_id: str | None, etag: str | None, span: Span | None = None
    ) -> AsyncIterator[Body]:
        found = await self._object_call("get", "GetObject", key, version_id)
        if etag not in (None, found.head.etag):
            raise CallFailed("GetObject", "PreconditionFailed", 412)
        if found.ref.storage_class in ARCHIVED_CLASSES:
            raise CallFailed("GetObject", "InvalidObjectState", 403)
        stored = s3_digests(Evidence(found.ref, found.acl, found.head))
        yield MemoryBody(found.body, len(found.body), found.head.etag, stored=stored).of(span)

    async def _object_call(self, name: str, action: str, key: str, version_id: str | None) -> MemoryObject:
        self.asked.append((name, key))
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        self.tasks = max(self.tasks, len(asyncio.all_tasks()))
        try:
            await self.hook(name, key)
        finally:
            self.in_flight -= 1
        found = self.find(key, version_id)
        if found is None:
            code = "404" if name == "head" else "NoSuchKey" if version_id is None else "NoSuchVersion"
            raise CallFailed(action, code, 404)
        return found


_CHECKSUMS: Final = tuple(
    one.name for one in fields(Head) if one.name.startswith("checksum_") and one.name != "checksum_type"
)
_NO_CHECKSUMS: Final[Mapping[str, Any]] = dict.fromkeys(("checksum_type", *_CHECKSUMS))


def _object(entry: Entry) -> MemoryObject | str:
    if isinstance(entry, ObjectRef):
        return MemoryObject(entry, _private(entry.owner or OWNER), Head(etag=entry.etag, content_length=entry.size))
    return entry


def _listed(ref: ObjectRef, query: ListQuery) -> ObjectRef:
    return ref if query.versions or ref.version_id is None else replace(ref, version_id=None)


def _private(owner: str) -> Acl:
    return Acl(owner, (Grant(owner, "FULL_CONTROL"),))


def _key(entry: MemoryObject | str) -> str:
    return entry if isinstance(entry, str) else entry.ref.key


def _matches(query: ListQuery, entry: MemoryObject | str) -> bool:
    key = _key(entry)
    current = isinstance(entry, MemoryObject) and entry.ref.is_latest
    inside = key.startswith(query.prefix) and (query.start_after is None or key > query.start_after)
    return inside and (query.versions or current)
