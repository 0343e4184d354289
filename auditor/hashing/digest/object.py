"""Hash one object, or many: stream the very version that was listed, and hold no more of it than a few buffers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypedDict, Unpack

from auditor.aio.backoff import backoff
from auditor.aio.budget import InFlightBudget as InFlightBudget
from auditor.aio.groups import task_group
from auditor.hashing.digest.digester_thread import InlineExecutor
from auditor.hashing.digest.one_pass import BUFFERS, ObjectDigester
from auditor.hashing.digest.result import Failed as Failed
from auditor.hashing.digest.result import Hashed as Hashed
from auditor.hashing.digest.result import Mismatch as Mismatch
from auditor.hashing.digest.result import Paused as Paused
from auditor.hashing.digest.result import Result as Result
from auditor.hashing.digest.result import Superseded as Superseded
from auditor.hashing.digest.result import Unhashable as Unhashable
from auditor.hashing.digest.streams import BUFFER, ONE_CORE, function_memory
from auditor.hashing.queue.message import HashTask
from auditor.model.digest import ALGORITHMS as ALGORITHMS
from auditor.s3.engines.base import Engine

MIB: Final = 1024 * 1024
CHUNK_SIZE: Final = MIB
"""docs/performance.md: larger ones cost more CPU a byte, and memory."""
BYTES_IN_FLIGHT: Final = 40 * MIB
"""Of all objects that are hashed at once: their buffers, and the blocks of those that have several streams."""
THREADS: Final = 64
"""Objects that are hashed at once at most, small ones aside; a thread that waits for bytes costs nothing."""
IN_PLACE_ATTEMPTS: Final = 3
SAVE_SECONDS: Final = 60.0

Stop = Callable[[], object]
"""True when it is time to stop; asked between buffers, and while a read waits."""
Save = Callable[[Mapping[str, Any] | None], Awaitable[None]]
"""Called with a checkpoint now and then; None where there is none to be had. What it raises ends the hashing."""


class Options(TypedDict, total=False):
    """What hash_object takes by name."""

    bucket: str
    chunk_size: int
    streams: int | None
    executor: Executor | None
    memory: InFlightBudget | None
    stop: Stop | None
    checkpoint: Mapping[str, Any] | None
    save: Save | None
    save_seconds: float
    turn: Callable[[], Awaitable[None]]


async def _at_once() -> None:
    """Nothing to wait for."""


async def hash_object(
    engine: Engine,
    task: HashTask,
    algorithms: Sequence[str],
    *,
    bucket: str = "",
    chunk_size: int = CHUNK_SIZE,
    streams: int | None = 1,
    executor: Executor | None = None,
    memory: InFlightBudget | None = None,
    stop: Stop | None = None,
    checkpoint: Mapping[str, Any] | None = None,
    save: Save | None = None,
    save_seconds: float = SAVE_SECONDS,
    turn: Callable[[], Awaitable[None]] = _at_once,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> Result:
    """Read the object once and digest it with every algorithm.

    What befalls this object is a value; only what would befall all (CredentialsError, UsageError) is raised, and what
    `save` raises. bucket: what checkpoints are bound to. streams: ranges that are read at once; None: as many as gain
    something. executor: where buffers are hashed, which lets go of the GIL; None: on the loop, which waits meanwhile.
    memory: from which further streams borrow their buffers. stop: then it ends with Paused. checkpoint: of a Paused or
    a `save`, to go on from; one that is not right is logged and the object hashed from its start. save: called about
    every `save_seconds`. turn: awaited before each call.
    """
    onepass = ObjectDigester(
        engine,
        task,
        algorithms,
        bucket=bucket,
        chunk_size=chunk_size,
        streams=streams,
        executor=executor,
        memory=memory,
        stop=stop,
        save=save,
        save_seconds=save_seconds,
        turn=turn,
        sleep=sleep,
    )
    return await onepass.run(checkpoint)


def hash_threads(environ: Mapping[str, str] = os.environ) -> Executor:
    """Threads, one for each object that is hashed; to be shut down by whoever asked for them.

    A function with no more than one core's share hashes on its loop: a second thread would win no time there, and
    moving a buffer from core to core costs CPU.
    """
    memory = function_memory(environ)
    if memory is not None and memory <= ONE_CORE:
        return InlineExecutor()
    return ThreadPoolExecutor(THREADS, thread_name_prefix="auditor-hash")


async def hash_patiently(
    engine: Engine,
    task: HashTask,
    algorithms: Sequence[str],
    *,
    attempts: int = IN_PLACE_ATTEMPTS,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    **options: Unpack[Options],
) -> Result:
    """hash_object, tried again while the failure is a passing one, after a jittered and growing pause."""
    for attempt in range(1, attempts + 1):
        result = await hash_object(engine, task, algorithms, sleep=sleep, **options)
        if not (isinstance(result, Failed) and result.retryable) or attempt == attempts:
            break
        await sleep(backoff(attempt, 0.2, 15.0))
    return result


async def hash_many(
    hash_one: Callable[[HashTask], Awaitable[None]],
    tasks: AsyncIterable[HashTask],
    permits: InFlightBudget,
    *,
    chunk_size: int = CHUNK_SIZE,
) -> None:
    """Call `hash_one` for each task, as many at once as `permits` allows; it hashes, and keeps its own result.

    A permit is taken before a task is made, so memory does not grow with `tasks`. An error of `hash_one` or of
    `tasks` ends the others and is raised as it is.
    """
    async with task_group() as group:
        async for task in tasks:
            weight = min(task.size, BUFFERS * min(chunk_size, BUFFER))
            await permits.take(weight)
            made = group.create_task(_run(hash_one, task))
            # Not in the task itself: one that is cancelled before its first step never runs.
            made.add_done_callback(partial(_give_back, permits, weight))


def _give_back(permits: InFlightBudget, weight: int, _: asyncio.Task[None]) -> None:
    permits.give(weight)


async def _run(hash_one: Callable[[HashTask], Awaitable[None]], task: HashTask) -> None:
    await hash_one(task)
