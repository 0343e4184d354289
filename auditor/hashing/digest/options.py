"""The options of reading and hashing an object. The settings of a run determine them, and the reader of the object's
bytes uses them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from msgspec import Struct

from auditor.aio.budget import InFlightBudget
from auditor.aio.stop import Stop
from auditor.config.settings import Settings
from auditor.hashing.limits import ATTEMPTS, BUFFER, BYTES_IN_FLIGHT, SAVE_SECONDS
from auditor.hashing.outage import S3Patience

Checkpoint = Mapping[str, Any]
"""The JSON object with which another process continues the hashing of an object."""
Save = Callable[[Checkpoint | None], Awaitable[None]]
"""Saves a checkpoint of an object. The argument is None if this machine's libcrypto cannot make a checkpoint. An error
that the function raises ends the hashing of the object."""


class HashOptions(Struct, frozen=True, kw_only=True):
    """The options of reading and hashing one object."""

    bucket: str = ""
    """Name of the bucket, written into checkpoints."""
    buffer_size: int = BUFFER
    """Number of bytes of one buffer."""
    streams: int | None = 1
    """Number of ranges of one object that are read at the same time; None to let a Tuner find the fastest number."""
    executor: Executor | None = None
    """Threads that hash buffers while the event loop reads; None to hash on the event loop."""
    memory: InFlightBudget | None = None
    """Budget of memory from which an object borrows the buffers of its further streams; None to give the object a
    budget of its own."""
    stop: Callable[[], object] | None = None
    """Returns a true value when the hashing must pause. Called between buffers, and from time to time while a read
    waits; None if nothing can stop the hashing."""
    save: Save | None = None
    """Called with a checkpoint every `save_seconds`; None to save no checkpoints."""
    save_seconds: float = SAVE_SECONDS
    attempts: int = ATTEMPTS
    """Largest number of attempts to read the object, if its failures may be temporary."""
    patience: S3Patience | None = None
    """Waits for the end of an outage of S3; None if an object that S3 refuses fails after its attempts."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    @classmethod
    def of(cls, bucket: str, settings: Settings, stop: Stop, *, executor: Executor, concurrency: int) -> HashOptions:
        """Return the options for a run over one bucket, whose objects all share one limit of memory, and wait for the
        end of an outage of S3.

        stop: ends that wait. executor: threads that hash buffers. concurrency: largest number of objects that are
        hashed at the same time.
        """
        return cls(
            bucket=bucket,
            streams=settings.streams,
            executor=executor,
            memory=InFlightBudget(concurrency, BYTES_IN_FLIGHT),
            attempts=settings.retry_attempts,
            patience=S3Patience(stop),
        )
