"""The options of the hashing worker."""

from __future__ import annotations

from dataclasses import dataclass

from auditor.config.settings import Settings
from auditor.hashing.limits import BUFFER, CONCURRENCY, LARGE, MAX_HOPS, SAVE_SECONDS
from auditor.hashing.worker.lease import LEASE_SECONDS
from auditor.model.digest import ALGORITHMS


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """The options of a hashing worker."""

    algorithms: tuple[str, ...] = ALGORITHMS[:1]
    """Algorithms for the objects of S3's events; an audit's message names its own."""
    concurrency: int = CONCURRENCY
    """Number of objects that are hashed at the same time."""
    buffer_size: int = BUFFER
    """As in HashOptions."""
    streams: int | None = None
    """As in HashOptions."""
    max_attempts: int = 5
    """Number of failures after which an object becomes a dead letter."""
    retry_base: float = 5.0
    """Seconds until a message is sent again the first time; doubled each time, up to 900."""
    max_hops: int = MAX_HOPS
    """Number of workers that may leave one object unfinished."""
    large: int = LARGE
    """Bytes from which an object is hashed under a lease."""
    lease_seconds: float = LEASE_SECONDS
    """Seconds that a lease lasts; each checkpoint renews it."""
    save_seconds: float = SAVE_SECONDS
    """As in HashOptions."""
    has_deadline: bool = False
    """True if the process has a deadline, before which it leaves its objects to another invocation."""
    accept_cost: bool = True
    """Hash new objects although their storage class charges for reading. An audit sends only objects that may be
    read."""

    @classmethod
    def of(cls, settings: Settings, *, has_deadline: bool = False) -> WorkerOptions:
        """Return the options that the settings ask for. has_deadline: True in a Lambda function."""
        return cls(
            algorithms=settings.algorithms,
            concurrency=settings.concurrency or CONCURRENCY,
            streams=settings.streams,
            has_deadline=has_deadline,
            accept_cost=settings.accept_cost,
        )
