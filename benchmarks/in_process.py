"""An audit within this process: computed objects, and an engine that answers at once."""

from __future__ import annotations

import asyncio
import hashlib
from bisect import bisect_right
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from types import ModuleType
from typing import Any, Final

from auditor.audit import begin_run
from auditor.aws.connection import Connection
from auditor.config import resources
from auditor.model.bucket import BucketFacts
from auditor.model.object import ALL_USERS, Acl, Grant, Head, ObjectRef
from auditor.s3.engines import ENGINES
from auditor.s3.engines.base import Body, Engine, ListQuery, Page, Position, Span
from benchmarks.facts import FACTS, OWNER

NAME: Final = "in-process"
PARTNER: Final = "b1" * 32
"""An account that the configuration trusts."""


class Objects:
    """Computed objects; each fact is made anew when it is read. public: anybody can read one object in so many."""

    def __init__(self, count: int, public: int) -> None:
        self.count = count
        self._public = public

    def after(self, key: str | None) -> int:
        """The number of the first object after a key."""
        return 0 if key is None else bisect_right(range(self.count), key, key=_key)

    def ref(self, number: int) -> ObjectRef:
        return ObjectRef(
            _key(number),
            _etag(number),
            number * 7919 % 10_000_000,
            f"2026-01-{number % 28 + 1:02}T03:{number % 60:02}:05Z",
            owner=OWNER,
            checksum_algorithms=("CRC64NVME",),
            checksum_type="FULL_OBJECT",
        )

    def acl(self, key: str) -> Acl:
        stranger = ALL_USERS if _number(key) % self._public == 0 else PARTNER
        return Acl(OWNER, (Grant(OWNER, "FULL_CONTROL"), Grant(stranger, "READ")))

    def head(self, key: str) -> Head:
        number = _number(key)
        return Head(
            etag=_etag(number),
            content_length=number * 7919 % 10_000_000,
            last_modified=f"2026-01-{number % 28 + 1:02}T03:{number % 60:02}:05Z",
            content_type="application/octet-stream",
            content_encoding="zstd",
            cache_control="private, max-age=0",
            metadata={"team": "warehouse", "build": str(number), "source": "export"},
            storage_class="STANDARD_IA",
            server_side_encryption="AES256",
            bucket_key_enabled=False,
            checksum_type="FULL_OBJECT",
            checksum_crc64nvme=_etag(number)[:11] + "=",
            replication_status="COMPLETED",
            tag_count=3,
            expiration='expiry-date="Fri, 01 Jan 2027 00:00:00 GMT", rule-id="yearly"',
        )


def _etag(number: int) -> str:
    """An ETag that compresses as badly as a real one."""
    return hashlib.md5(number.to_bytes(8)).hexdigest()


def _key(number: int) -> str:
    return f"warehouse/exports/2026/part-{number:018}-daily.parquet"


def _number(key: str) -> int:
    return int(key[28:46])


class InProcessEngine:
    """Answers each call after one turn of the event loop, the shortest wait of a call over a network."""

    open_connections = 0

    def keep_idle(self, connections: int) -> None:
        pass

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    async def list_page(self, query: ListQuery, position: Position | None) -> Page:
        start = int(position.token or 0) if position else self._objects.after(query.start_after)
        end = min(start + query.page_size, self._objects.count)
        following = Position(token=str(end)) if end < self._objects.count else None
        return Page(tuple(map(self._objects.ref, range(start, end))), following)

    async def get_acl(self, key: str, version_id: str | None) -> Acl:
        await asyncio.sleep(0)
        return self._objects.acl(key)

    async def head(self, key: str, version_id: str | None, *, checksum: bool) -> Head:
        await asyncio.sleep(0)
        return self._objects.head(key)

    def get(
        self, key: str, version_id: str | None, etag: str | None, span: Span | None = None
    ) -> AbstractAsyncContextManager[Body]:
        raise NotImplementedError("an audit reads no bytes")


@contextmanager
def engine(objects: Objects) -> Iterator[None]:
    """Add the engine to ENGINES within the block, and let audits take the known facts of the bucket without a call."""

    @asynccontextmanager
    async def opened(connection: Connection) -> AsyncIterator[Engine]:
        yield InProcessEngine(objects)

    async def known(_settings: Any, connection: Connection, *_: Any) -> tuple[Connection, BucketFacts]:
        return connection, FACTS

    def opened_in_its_region(_engine: str, connection: Connection) -> AbstractAsyncContextManager[Engine]:
        return opened(connection)

    ENGINES[NAME] = opened
    try:
        with put_for(begin_run, "ask_bucket", known), put_for(resources, "open_in_its_region", opened_in_its_region):
            yield
    finally:
        del ENGINES[NAME]


@contextmanager
def put_for(module: ModuleType, name: str, stand_in: Any) -> Iterator[None]:
    """Put something in the place of a module's function or class within the block."""
    names = vars(module)
    real, names[name] = names[name], stand_in
    try:
        yield
    finally:
        names[name] = real
