"""Large objects with many cuts share fewer connections than they have streams, and all are hashed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from auditor.aio.budget import InFlightBudget
from auditor.hashing.digest.object import hash_object, hash_threads
from auditor.hashing.digest.options import HashOptions
from auditor.hashing.digest.result import Hashed
from auditor.hashing.limits import MIB
from auditor.s3.engines.base import Body, Span
from tests.support.generated import Cut, Generated, digests_of, no_pause

SIZE = 96 * MIB
"""More than the memory of all streams holds, so that blocks have to wait for it."""


@dataclass(slots=True)
class Cutting(Generated):
    """Two connections, and a cut in four of five bodies."""

    connections: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))
    chance: random.Random = field(default_factory=lambda: random.Random(7))

    @asynccontextmanager
    async def _get(self, etag: str | None, span: Span | None) -> AsyncIterator[Body]:
        async with self.connections:
            await asyncio.sleep(0)
            first, last = (0, SIZE - 1) if span is None else (span.first, SIZE - 1 if span.last is None else span.last)
            cut = Cut(self.chance.randrange(1, last - first + 2)) if self.chance.random() < 0.8 else None
            self.answers.append(cut)
            async with Generated._get(self, etag, span) as body:
                yield body


async def test_no_stream_withholds_a_connection_from_the_first_block() -> None:
    engine = Cutting(SIZE)
    with hash_threads() as executor:
        options = HashOptions(streams=4, executor=executor, memory=InFlightBudget(16, 4 * SIZE), sleep=no_pause)
        async with asyncio.timeout(60):
            found = await asyncio.gather(*(hash_object(engine, engine.task, ("sha1",), options) for _ in range(3)))
    assert [one.digests for one in found if isinstance(one, Hashed)] == 3 * [digests_of(SIZE, "sha1")]
