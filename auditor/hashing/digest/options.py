"""How an object is read and hashed: one value that travels from the settings down to the reader of the bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from auditor.aio.budget import InFlightBudget
from auditor.config.settings import Settings
from auditor.hashing.limits import ATTEMPTS, BUFFER, BYTES_IN_FLIGHT, SAVE_SECONDS

Checkpoint = Mapping[str, Any]
"""The JSON object that checkpoint.py writes and reads: from it another process continues an object."""
Save = Callable[[Checkpoint | None], Awaitable[None]]
"""Stores a checkpoint; None where libcrypto cannot give one. An error that it raises ends the hashing."""


async def _no_wait() -> None:
    """Let every call through at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HashOptions:
    """bucket: name of the bucket, written into checkpoints. buffer_size: bytes of one read.

    streams: ranges of one object that are read at the same time; None: as many as make it faster. executor: threads
    that hash the buffers while the event loop reads; None: the event loop hashes them itself. memory: budget from which
    further streams borrow their buffers; None: a budget for this object alone.

    stop: returns true when the hashing must pause; it is asked between buffers and while a read waits. save: called
    every `save_seconds`. attempts: reads of the object as long as its failures pass. turn: awaited before each call.
    """

    bucket: str = ""
    buffer_size: int = BUFFER
    streams: int | None = 1
    executor: Executor | None = None
    memory: InFlightBudget | None = None
    stop: Callable[[], object] | None = None
    save: Save | None = None
    save_seconds: float = SAVE_SECONDS
    attempts: int = ATTEMPTS
    turn: Callable[[], Awaitable[None]] = _no_wait
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    @classmethod
    def of(
        cls,
        bucket: str,
        settings: Settings,
        *,
        executor: Executor,
        concurrency: int,
        turn: Callable[[], Awaitable[None]],
    ) -> HashOptions:
        """The options of a run over one bucket, whose objects share one budget of memory."""
        return cls(
            bucket=bucket,
            streams=settings.streams,
            executor=executor,
            memory=InFlightBudget(concurrency, BYTES_IN_FLIGHT),
            attempts=settings.retry_attempts,
            turn=turn,
        )
