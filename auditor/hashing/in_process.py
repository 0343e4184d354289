"""What is done with objects that are not hashed yet: the hashers of a run, and what they made of each object."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Literal, Protocol

from auditor.aio.budget import InFlightBudget
from auditor.errors import DigestConflict
from auditor.hashing.digest.object import BYTES_IN_FLIGHT, IN_PLACE_ATTEMPTS, hash_many, hash_patiently
from auditor.hashing.digest.result import Failed, Hashed, Mismatch, Unhashable
from auditor.hashing.queue.message import HashTask
from auditor.ledger.base import Ledger
from auditor.model.object import ObjectRef
from auditor.s3.engines.base import Engine
from auditor.s3.rate import RateLimit

log = logging.getLogger(__name__)

State = Literal["known", "hashed_now", "queued", "unhashable", "pending"]


@dataclass(frozen=True, slots=True)
class HashOutcome:
    """What a hasher made of one object. read, stored: digests of its bytes and S3's, where they are not as they should
    be: then the object stays pending.
    """

    state: State
    read: Mapping[str, str] = field(default_factory=dict)
    stored: Mapping[str, str] = field(default_factory=dict)


class Hasher(Protocol):
    """What is done with objects that are not hashed yet."""

    async def take(self, refs: Sequence[ObjectRef]) -> list[HashOutcome]:
        """What became of each, in order."""
        ...


class InProcessHasher:
    """Hashes here and now (`--hash`, `auditor hash`), several objects at once in bounded memory.

    executor: where large buffers are hashed. streams: ranges of one object that are read at once; None: auto.
    attempts: at each object, while its failures are passing ones. failed: how many could not be hashed, or have another
    digest than S3 stores or the ledger remembers; each of them stays pending.
    """

    def __init__(
        self,
        bucket: str,
        engine: Engine,
        ledger: Ledger,
        algorithms: Sequence[str],
        *,
        rate: RateLimit,
        concurrency: int,
        chunk_size: int,
        executor: Executor,
        streams: int | None = None,
        attempts: int = IN_PLACE_ATTEMPTS,
    ) -> None:
        self._bucket = bucket
        self._rate = rate
        self._engine = engine
        self._ledger = ledger
        self._algorithms = tuple(algorithms)
        self._permits = InFlightBudget(concurrency, BYTES_IN_FLIGHT)
        self._chunk_size = chunk_size
        self._executor = executor
        self._streams = streams
        self._attempts = attempts
        self.failed = 0

    async def take(self, refs: Sequence[ObjectRef]) -> list[HashOutcome]:
        taken: dict[tuple[str, str | None], HashOutcome] = {}

        async def one(task: HashTask) -> None:
            taken[task.key, task.version_id] = await self._hash(task)

        async def tasks() -> AsyncIterator[HashTask]:
            for ref in refs:
                yield HashTask(ref.key, ref.version_id, ref.etag, ref.size, 0)

        await hash_many(one, tasks(), self._permits, chunk_size=self._chunk_size)
        return [taken[ref.key, ref.version_id] for ref in refs]

    async def _hash(self, task: HashTask) -> HashOutcome:
        result = await hash_patiently(
            self._engine,
            task,
            self._algorithms,
            attempts=self._attempts,
            bucket=self._bucket,
            chunk_size=self._chunk_size,
            streams=self._streams,
            executor=self._executor,
            memory=self._permits,
            turn=self._rate.take,
        )
        if isinstance(result, Hashed):
            return await self._record(result)
        if isinstance(result, Unhashable):
            return HashOutcome("unhashable")
        if isinstance(result, Mismatch):
            self.failed += 1
            log.error(
                "%r of %s: its bytes have the %s %s, and S3 stores %s: it is damaged, or was replaced",
                *(task.key, self._bucket, result.algorithm, result.ours, result.stored),
            )
            return HashOutcome("pending", {result.algorithm: result.ours}, {result.algorithm: result.stored})
        self.failed += isinstance(result, Failed)
        return HashOutcome("pending")

    async def _record(self, hashed: Hashed) -> HashOutcome:
        try:
            await self._ledger.record(hashed.entry(self._bucket))
        except DigestConflict as error:  # of this object alone: the others are none the worse for it
            log.error("%s", error)
            self.failed += 1
            return HashOutcome("pending", hashed.digests)
        return HashOutcome("hashed_now")
