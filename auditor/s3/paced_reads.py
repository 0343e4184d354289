"""Make the GetObject calls of a run within the limit of calls per second, and count them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from auditor.s3.engines.base import Body, Span
from auditor.s3.rate import RateLimit


class Reads(Protocol):
    """The part of an engine's interface that reads objects."""

    def get(
        self, key: str, version_id: str | None, etag: str | None, span: Span | None = None
    ) -> AbstractAsyncContextManager[Body]: ...


class PacedReads:
    """Reads objects through an engine. Each call first waits for its turn in the limit `rate`.

    calls, bytes: number of calls and of bytes so far.
    """

    def __init__(self, engine: Reads, rate: RateLimit) -> None:
        self.calls = self.bytes = 0
        self._engine = engine
        self._rate = rate

    @asynccontextmanager
    async def get(
        self, key: str, version_id: str | None, etag: str | None, span: Span | None = None
    ) -> AsyncIterator[Body]:
        self.calls += 1
        await self._rate.take()
        async with self._engine.get(key, version_id, etag, span) as body:
            yield _CountedBody(body, self)


class _CountedBody:
    """A body that counts its bytes while they arrive."""

    def __init__(self, body: Body, reads: PacedReads) -> None:
        self.length, self.etag, self.stored = body.length, body.etag, body.stored
        self._readinto, self._reads = body.readinto, reads

    async def readinto(self, buffer: memoryview) -> int:
        count = await self._readinto(buffer)
        self._reads.bytes += count
        return count
