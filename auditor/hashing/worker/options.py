"""The options of the hashing worker."""

from __future__ import annotations

from msgspec import Struct

from auditor.config.settings import Settings
from auditor.hashing.limits import BUFFER, CONCURRENCY, LARGE, MAX_HOPS, SAVE_SECONDS
from auditor.hashing.worker.lease import LEASE_SECONDS
from auditor.model.digest import ALGORITHMS


class WorkerOptions(Struct, frozen=True, kw_only=True):
    """The options of a hashing worker."""

    algorithms: tuple[str, ...] = ALGORITHMS[:1]
    """Algorithms for the objects that S3's events report. The messages of an audit name their own."""
    concurrency: int = CONCURRENCY
    """Number of objects that are hashed at the same time."""
    buffer_size: int = BUFFER
    """Number of bytes of one buffer."""
    streams: int | None = None
    """Number of ranges of one object that are read at the same time; None to find the fastest number."""
    max_attempts: int = 5
    """Number of failed attempts after which an object goes to the dead-letter queue."""
    retry_base: float = 5.0
    """Longest pause in seconds before the first repetition. The limit doubles for each further repetition, up to
    900."""
    max_hops: int = MAX_HOPS
    """Largest number of workers that may leave one object unfinished, because their time ran out or S3 refused it."""
    large: int = LARGE
    """Object size in bytes from which an object is hashed under a lease."""
    lease_seconds: float = LEASE_SECONDS
    """Seconds that a lease lasts after the claim, and after each checkpoint."""
    save_seconds: float = SAVE_SECONDS
    """Seconds between two checkpoints of an object."""
    has_deadline: bool = False
    """True if the process has a deadline, as in Lambda. Shortly before the deadline, unfinished objects are left to
    another invocation."""
    accept_cost: bool = True
    """True to hash new objects that S3's events report, even if their storage class charges for reading. An audit sends
    only objects that may be read."""

    @classmethod
    def of(cls, settings: Settings, *, has_deadline: bool = False) -> WorkerOptions:
        """Return the worker's options according to the settings.

        has_deadline: True in a Lambda function.
        """
        return cls(
            algorithms=settings.algorithms,
            concurrency=settings.concurrency or CONCURRENCY,
            streams=settings.streams,
            has_deadline=has_deadline,
            accept_cost=settings.accept_cost,
        )
