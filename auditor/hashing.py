"""Hash one object, or many: stream the very version that was listed, and hold no more of it than one chunk."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from auditor.engines.interface import Body, Engine
from auditor.errors import BucketError, CallFailed
from auditor.faults import doom, is_gone, is_transient
from auditor.ledgers.interface import Entry
from auditor.messages import ALGORITHMS as ALGORITHMS
from auditor.messages import HashTask
from auditor.tasks import task_group

MIB: Final = 1024 * 1024
CHUNK_SIZE: Final = MIB
"""docs/performance.md: larger ones cost more CPU a byte, and memory."""
IN_PLACE_ATTEMPTS: Final = 3
_INLINE: Final = 128 * 1024
"""Bytes that are hashed on the loop: a thread's hand-over would cost more than these take."""


@dataclass(frozen=True, slots=True)
class Hashed:
    """Every byte was read and counted. digests: algorithm to lower-case hex."""

    task: HashTask
    digests: Mapping[str, str]

    def entry(self, bucket: str) -> Entry:
        """What the ledger is to remember of it, as of now."""
        task, now = self.task, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return Entry(
            bucket=bucket,
            key=task.key,
            version_id=task.version_id,
            etag=task.etag,
            size=task.size,
            digests=self.digests,
            hashed_at=now,
        )


@dataclass(frozen=True, slots=True)
class Superseded:
    """The listed version is not there any more. code: `Overwritten` or `Vanished`."""

    task: HashTask
    code: str


@dataclass(frozen=True, slots=True)
class Unhashable:
    """Its bytes cannot be read here, however often it is tried. code: `archived` or `SSE-C`."""

    task: HashTask
    code: str


@dataclass(frozen=True, slots=True)
class Failed:
    """It could not be read. code: S3's, or `ByteCount`, `SizeDiffers`. retryable: at once, in place."""

    task: HashTask
    code: str
    retryable: bool


Result = Hashed | Superseded | Unhashable | Failed


class Permits:
    """How many objects, and how many of their bytes, may be in flight; the largest object passes when it is alone."""

    def __init__(self, count: int, size: int) -> None:
        self._count = max(1, count)
        self._size = size
        self._taken = 0
        self._bytes = 0
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def taken(self) -> int:
        return self._taken

    async def take(self, size: int) -> None:
        while not self._fits(size):
            turn = asyncio.get_running_loop().create_future()
            self._waiting.add(turn)
            try:
                await turn
            finally:
                self._waiting.discard(turn)
        self._taken += 1
        self._bytes += size

    def give(self, size: int) -> None:
        self._taken -= 1
        self._bytes -= size
        for turn in self._waiting:
            if not turn.done():
                turn.set_result(None)

    def _fits(self, size: int) -> bool:
        return self._taken == 0 or (self._taken < self._count and self._bytes + size <= self._size)


async def hash_object(
    engine: Engine,
    task: HashTask,
    algorithms: Sequence[str],
    *,
    chunk_size: int = CHUNK_SIZE,
    executor: Executor | None = None,
) -> Result:
    """Read the object once and digest it with every algorithm.

    What befalls this object is a value; only CredentialsError, which would befall all, is raised.
    executor: where large chunks are hashed (hashlib lets go of the GIL); None: on the loop, which waits meanwhile.
    """
    # The null version can be overwritten under its own name, so its ETag is asked for as well.
    pinned = task.version_id not in (None, "null")
    try:
        async with engine.get(task.key, task.version_id, None if pinned else task.etag) as body:
            if body.etag != task.etag:
                return Superseded(task, "Overwritten")
            if body.length != task.size:
                return Failed(task, "SizeDiffers", retryable=False)
            digests, count = await _digest(body, algorithms, chunk_size, executor)
            if count != body.length:
                return Failed(task, "ByteCount", retryable=True)
            return Hashed(task, digests)
    except CallFailed as failure:
        return classify(task, failure)


def classify(task: HashTask, failure: CallFailed) -> Result:
    """What a failed GetObject makes of its object; raises where it would befall every object of every bucket."""
    if failure.code in ("PreconditionFailed", "412") or failure.status == 412:
        return Superseded(task, "Overwritten")
    if is_gone(failure):
        return Superseded(task, "Vanished")
    if failure.code == "InvalidObjectState":
        return Unhashable(task, "archived")
    if failure.code == "InvalidRequest" and failure.status == 400:
        # S3 asks for the customer's key this way, and gives no code of its own to it.
        return Unhashable(task, "SSE-C")
    doomed = doom(failure, "")
    if doomed is not None and not isinstance(doomed, BucketError):
        raise doomed from failure
    return Failed(task, failure.code, retryable=is_transient(failure))


async def _digest(
    body: Body, algorithms: Sequence[str], chunk_size: int, executor: Executor | None
) -> tuple[dict[str, str], int]:
    hashes = {name: _new(name) for name in algorithms}
    loop = asyncio.get_running_loop()
    count = 0
    async for chunk in body.chunks(chunk_size):
        count += len(chunk)
        if executor is None or len(chunk) <= _INLINE:
            _update(hashes, chunk)
        else:
            await loop.run_in_executor(executor, _update, hashes, chunk)
    return {name: state.hexdigest() for name, state in hashes.items()}, count


def _new(algorithm: str) -> Any:
    # Fixity against records made elsewhere, not security: FIPS builds allow sha1 and md5 for that only.
    return hashlib.new(algorithm, usedforsecurity=False)


def _update(hashes: Mapping[str, Any], chunk: bytes) -> None:
    for state in hashes.values():
        state.update(chunk)


def hash_threads() -> ThreadPoolExecutor:
    """Threads for large chunks, one a core; to be shut down by whoever asked for them."""
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="auditor-hash")


async def _at_once() -> None:
    """Nothing to wait for."""


async def hash_patiently(
    engine: Engine,
    task: HashTask,
    algorithms: Sequence[str],
    *,
    attempts: int = IN_PLACE_ATTEMPTS,
    chunk_size: int = CHUNK_SIZE,
    executor: Executor | None = None,
    turn: Callable[[], Awaitable[None]] = _at_once,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Result:
    """hash_object, tried again while the failure is a passing one, after a jittered and growing pause.

    turn: awaited before each attempt.
    """
    for attempt in range(1, attempts + 1):
        await turn()
        result = await hash_object(engine, task, algorithms, chunk_size=chunk_size, executor=executor)
        if not (isinstance(result, Failed) and result.retryable) or attempt == attempts:
            break
        await sleep(0.2 * 2**attempt * random.uniform(0.5, 1.0))  # noqa: S311 - spreads retries, guards nothing
    return result


async def hash_many(
    hash_one: Callable[[HashTask], Awaitable[None]],
    tasks: AsyncIterable[HashTask],
    permits: Permits,
    *,
    chunk_size: int = CHUNK_SIZE,
) -> None:
    """Call `hash_one` for each task, as many at once as `permits` allows; it hashes, and keeps its own result.

    A permit is taken before a task is made, so memory does not grow with `tasks`. An error of `hash_one` or of
    `tasks` ends the others and is raised as it is.
    """
    async with task_group() as group:
        async for task in tasks:
            weight = min(task.size, chunk_size)
            await permits.take(weight)
            made = group.create_task(_run(hash_one, task))
            # Not in the task itself: one that is cancelled before its first step never runs.
            made.add_done_callback(partial(_give_back, permits, weight))


def _give_back(permits: Permits, weight: int, _: asyncio.Task[None]) -> None:
    permits.give(weight)


async def _run(hash_one: Callable[[HashTask], Awaitable[None]], task: HashTask) -> None:
    await hash_one(task)
