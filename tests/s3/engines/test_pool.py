"""The pool of engines opens one engine a bucket, closes none in use, and closes the least recently used first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from auditor.errors import BucketError
from auditor.s3.engines.base import Engine
from auditor.s3.engines.pool import EnginePool
from tests.support.fakes.hashing import Store


class Opened:
    """Opens stores, and records the order of openings and closings. refuses: buckets that cannot be opened."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.refuses: set[str] = set()

    @asynccontextmanager
    async def __call__(self, bucket: str) -> AsyncIterator[Engine]:
        await asyncio.sleep(0)
        if bucket in self.refuses:
            raise BucketError(f"there is no bucket named {bucket!r}")
        self.log.append(f"+{bucket}")
        yield Store()
        self.log.append(f"-{bucket}")


async def use(pool: EnginePool[str], *buckets: str) -> None:
    for bucket in buckets:
        async with pool.lend(bucket):
            pass


async def test_users_at_once_share_one_engine() -> None:
    opened = Opened()
    async with EnginePool(opened) as pool:
        await asyncio.gather(*(use(pool, "a") for _ in range(5)))
        assert opened.log == ["+a"]
    assert opened.log == ["+a", "-a"]


async def test_least_lately_used_engine_is_closed_when_there_are_too_many() -> None:
    opened = Opened()
    async with EnginePool(opened, size=2) as pool:
        await use(pool, "a", "b", "a", "c")
        assert opened.log == ["+a", "+b", "+c", "-b"]
        assert pool.opened == ["a", "c"]
        await use(pool, "b")
    assert sorted(opened.log) == sorted(["+a", "+b", "+c", "-b", "+b", "-a", "-b", "-c"])


async def test_engine_in_use_is_never_closed() -> None:
    opened = Opened()
    async with EnginePool(opened, size=1) as pool:
        async with pool.lend("a"):
            await use(pool, "b", "c")
            assert "-a" not in opened.log
        assert pool.opened == ["a"]


async def test_bucket_that_cannot_be_opened_is_tried_again_by_the_next_user() -> None:
    opened = Opened()
    opened.refuses = {"a"}
    async with EnginePool(opened) as pool:
        answers = await asyncio.gather(*(use(pool, "a") for _ in range(3)), return_exceptions=True)
        assert [type(answer) for answer in answers] == [BucketError] * 3
        assert pool.opened == []
        opened.refuses = set()
        await use(pool, "a")
    assert opened.log == ["+a", "-a"]
