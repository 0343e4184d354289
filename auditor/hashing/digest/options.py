"""The options of reading and hashing an object, which are passed from the settings down to the reader of its bytes."""

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
"""A JSON object that checkpoint.py writes and reads. Another process continues the hashing from it."""
Save = Callable[[Checkpoint | None], Awaitable[None]]
"""Stores a checkpoint, or gets None if this machine's libcrypto cannot give one. If it raises an error, hashing
ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HashOptions:
    """The options of reading and hashing one object."""

    bucket: str = ""
    """Name of the bucket, written into checkpoints."""
    buffer_size: int = BUFFER
    """Bytes of one buffer."""
    streams: int | None = 1
    """Number of ranges of one object that are read at the same time; None: a Tuner finds the fastest number."""
    executor: Executor | None = None
    """Threads that hash buffers while the event loop reads; None: the event loop hashes them itself."""
    memory: InFlightBudget | None = None
    """Budget from which further streams borrow their buffers; None: a budget for this object alone."""
    stop: Callable[[], object] | None = None
    """Returns true when the hashing must pause. It is called between buffers and while a read waits."""
    save: Save | None = None
    """Called with a checkpoint every `save_seconds`; None: save nothing."""
    save_seconds: float = SAVE_SECONDS
    attempts: int = ATTEMPTS
    """Number of attempts to read the object, if its failures may be temporary."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    @classmethod
    def of(cls, bucket: str, settings: Settings, *, executor: Executor, concurrency: int) -> HashOptions:
        """Return the options for a run over one bucket. All objects of the run share one limit of memory. executor: as
        in HashOptions. concurrency: most objects at once.
        """
        return cls(
            bucket=bucket,
            streams=settings.streams,
            executor=executor,
            memory=InFlightBudget(concurrency, BYTES_IN_FLIGHT),
            attempts=settings.retry_attempts,
        )
