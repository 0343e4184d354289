"""The options of the hashing worker."""

from __future__ import annotations

from dataclasses import dataclass

from auditor.config.settings import Settings
from auditor.hashing.limits import BUFFER, CONCURRENCY, LARGE, MAX_HOPS, SAVE_SECONDS
from auditor.hashing.worker.lease import LEASE_SECONDS
from auditor.model.digest import ALGORITHMS


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """algorithms: for S3's events; an audit's message names its own. concurrency: objects that are hashed at the same
    time.

    buffer_size, streams, save_seconds: as in HashOptions. large: bytes from which an object is hashed under a lease,
    which lasts `lease_seconds` and is renewed with each checkpoint. accept_cost: hash new objects even when their
    storage class charges for reading; an audit sends only objects that may be read.

    max_attempts: failures after which an object becomes a dead letter. max_hops: workers that may leave it unfinished.
    retry_base: seconds until a message is sent again the first time; doubled each time, up to 900. has_deadline: the
    process has one, before which it leaves all objects to another invocation.
    """

    algorithms: tuple[str, ...] = ALGORITHMS[:1]
    concurrency: int = CONCURRENCY
    buffer_size: int = BUFFER
    streams: int | None = None
    max_attempts: int = 5
    retry_base: float = 5.0
    max_hops: int = MAX_HOPS
    large: int = LARGE
    lease_seconds: float = LEASE_SECONDS
    save_seconds: float = SAVE_SECONDS
    has_deadline: bool = False
    accept_cost: bool = True

    @classmethod
    def of(cls, settings: Settings, *, has_deadline: bool = False) -> WorkerOptions:
        return cls(
            algorithms=settings.algorithms,
            concurrency=settings.concurrency or CONCURRENCY,
            streams=settings.streams,
            has_deadline=has_deadline,
            accept_cost=settings.accept_cost,
        )
