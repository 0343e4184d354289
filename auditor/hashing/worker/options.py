"""The options of hashing one message's objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from auditor.config.settings import Settings
from auditor.hashing.digest.object import CHUNK_SIZE, IN_PLACE_ATTEMPTS, MIB, SAVE_SECONDS
from auditor.hashing.queue.message import LARGE
from auditor.hashing.worker.lease import LEASE_SECONDS
from auditor.model.digest import ALGORITHMS

MAX_HOPS: Final = 200
"""5 TB at 65 GB an invocation is 80 of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HashSettings:
    """algorithms: what S3's own events ask for. concurrency: objects at once. bytes_in_flight, chunk_size: bytes of all
    buffers, and of one. streams: as hash_object has it.

    max_attempts: failures after which an object goes to the dead-letter queue; max_hops: workers that may leave it
    unfinished. retry_base: seconds, the first delay of a message that is sent again; it doubles up to 900. large: bytes
    from which an object is hashed under a lease, which lasts lease_seconds and is renewed, with a checkpoint, every
    save_seconds. has_deadline: there is a deadline, at which everything is left to another invocation. accept_cost: new
    objects are read whatever their storage class is charged for it; an audit queues only what it may.
    """

    algorithms: tuple[str, ...] = ALGORITHMS[:1]
    concurrency: int = 16
    bytes_in_flight: int = 48 * MIB
    chunk_size: int = CHUNK_SIZE
    streams: int | None = None
    max_attempts: int = 5
    in_place_attempts: int = IN_PLACE_ATTEMPTS
    retry_base: float = 5.0
    max_hops: int = MAX_HOPS
    large: int = LARGE
    lease_seconds: float = LEASE_SECONDS
    save_seconds: float = SAVE_SECONDS
    has_deadline: bool = False
    accept_cost: bool = True


CONCURRENCY: Final = 16


def hash_settings(settings: Settings, *, has_deadline: bool = False) -> HashSettings:
    """What of the settings the hashing of one message needs."""
    return HashSettings(
        algorithms=settings.algorithms,
        concurrency=settings.concurrency or CONCURRENCY,
        streams=settings.streams,
        has_deadline=has_deadline,
        accept_cost=settings.accept_cost,
    )
