"""Large objects with many cuts share fewer connections than they have streams, and all are hashed."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import MappingProxyType

from auditor.aio.budget import InFlightBudget
from auditor.errors import CallFailed
from auditor.hashing.digest.object import hash_object, hash_threads
from auditor.hashing.digest.options import HashOptions
from auditor.hashing.digest.result import Hashed
from auditor.hashing.limits import MIB
from auditor.hashing.queue.message import HashTask
from auditor.s3.engines.base import Body, Span
from tests.support.fakes.hashing import GetOnly

SIZE = 96 * MIB
"""More than the memory of all streams holds, so that blocks have to wait for it."""


class _Cut:
    """Zeros, up to a cut."""

    stored: Mapping[str, str] = MappingProxyType({})
    etag = "e"

    def __init__(self, length: int, cut: int) -> None:
        self.length = length
        self._left, self._until = length, cut

    async def readinto(self, buffer: memoryview) -> int:
        await asyncio.sleep(0)
        count = min(len(buffer), self._left, self._until)
        self._left -= count
        self._until -= count
        if self._left and not self._until:
            failure = CallFailed("GetObject", "ConnectionError")
            failure.read = count
            raise failure
        return count


class _Cutting(GetOnly):
    """A limit of connections, and a cut in four of five bodies."""

    def __init__(self, connections: int, seed: int) -> None:
        self._connections = asyncio.Semaphore(connections)
        self._random = random.Random(seed)

    def get(
        self, key: str, version_id: str | None, etag: str | None, span: Span | None = None
    ) -> AbstractAsyncContextManager[Body]:
        return self._get(span)

    @asynccontextmanager
    async def _get(self, span: Span | None) -> AsyncIterator[Body]:
        async with self._connections:
            await asyncio.sleep(0)
            first, last = (0, None) if span is None else (span.first, span.last)
            length = (SIZE if last is None else last + 1) - first
            yield _Cut(length, self._random.randrange(1, length + 1) if self._random.random() < 0.8 else length)


async def test_no_stream_withholds_a_connection_from_the_first_block() -> None:
    engine, permits = _Cutting(2, 7), InFlightBudget(16, 4 * SIZE)

    async def pause(_: float) -> None:
        await asyncio.sleep(0)

    with hash_threads() as executor:
        async with asyncio.timeout(60):
            results = await asyncio.gather(
                *(
                    hash_object(
                        engine,
                        HashTask(str(number), None, "e", SIZE),
                        ("sha1",),
                        HashOptions(streams=4, executor=executor, memory=permits, sleep=pause),
                    )
                    for number in range(3)
                )
            )
    truth = hashlib.sha1(bytes(SIZE), usedforsecurity=False).hexdigest()
    assert [result.digests["sha1"] for result in results if isinstance(result, Hashed)] == 3 * [truth]
