"""The hashing of what one message asks for: the known skipped, small objects side by side, large ones under a lease."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Unpack
from uuid import uuid4

from auditor.aio.budget import InFlightBudget
from auditor.aio.stop import CutOff, Stop
from auditor.errors import BucketError, CallFailed
from auditor.hashing.digest.object import Options, Save, hash_many, hash_patiently
from auditor.hashing.digest.result import Failed, Hashed, Mismatch, Paused, Result, Superseded, Unhashable, classify
from auditor.hashing.queue.message import HashMessage, HashTask
from auditor.hashing.queue.notification import EVENT_RUN
from auditor.hashing.worker.batch_writer import BatchWriter
from auditor.hashing.worker.counts import Counts
from auditor.hashing.worker.dead_letters import log_mismatch
from auditor.hashing.worker.lease import LeasedHasher, Waiting
from auditor.hashing.worker.options import HashSettings as HashSettings
from auditor.ledger.base import Ledger, Work
from auditor.ledger.history import disagreed
from auditor.model.object import ObjectRef
from auditor.s3.engines.base import Engine
from auditor.s3.engines.pool import EnginePool
from auditor.s3.storage_class import charged
from auditor.text import harmless

log = logging.getLogger(__name__)

OUT_OF_TIME: Final = "OutOfTime"
"""The code of an object that was begun and gained nothing by the deadline."""


@dataclass(slots=True)
class MessageResult:
    """What became of a message's objects. continued: to be sent on at once. waiting: another worker is at them."""

    message: HashMessage
    counts: Counts = field(default_factory=Counts)
    failed: list[Failed] = field(default_factory=list)
    continued: list[HashTask] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)

    def sentence(self) -> str:
        counts, tasks = self.counts, len(self.message.tasks)
        return (
            f"{tasks} objects of a message: {counts.hashed} hashed, {counts.known} known,"
            f" {counts.superseded} superseded, {counts.unhashable} unhashable, {len(self.failed)} failed,"
            f" {len(self.continued)} continued, {len(self.waiting)} waiting,"
            f" {counts.left_for_cost} left for their cost"
        )


class MessageHasher:
    """Hashes any number of messages at once; all share the permits, so that their objects stay within the settings.

    clock: seconds since the epoch, for leases.
    """

    def __init__(
        self,
        ledger: Ledger,
        engines: EnginePool[str],
        settings: HashSettings,
        *,
        executor: Executor | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._ledger = ledger
        self._engines = engines
        self._settings = settings
        self._executor = executor
        self._sleep = sleep
        self._permits = InFlightBudget(settings.concurrency, settings.bytes_in_flight)
        self._recording = BatchWriter(ledger)
        owner = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:12]}"
        self._leased = LeasedHasher(ledger, owner, lease_seconds=settings.lease_seconds, clock=clock)

    async def hash(self, message: HashMessage, stop: Stop) -> MessageResult:
        """Raises LedgerError, CredentialsError: what every message would meet."""
        worked = MessageResult(message)
        todo = await self._unknown(worked)
        if todo:
            await self._hash_unknown(worked, todo, stop)
        return worked

    async def _unknown(self, worked: MessageResult) -> list[HashTask]:
        message, settings = worked.message, self._settings
        refs = [ObjectRef(task.key, task.etag, task.size, "", task.version_id) for task in message.tasks]
        known = await self._ledger.known(message.bucket, refs, message.algorithms)
        todo: list[HashTask] = []
        for task, digests in zip(message.tasks, known, strict=True):
            if all(algorithm in digests for algorithm in message.algorithms):
                worked.counts += Counts(known=1)
            elif task.attempts >= settings.max_attempts:
                worked.failed.append(Failed(task, "TooManyAttempts", retryable=False))
            elif task.hops > settings.max_hops:
                worked.failed.append(Failed(task, "TooManyHops", retryable=False))
            else:
                todo.append(task)
        return todo

    async def _hash_unknown(self, worked: MessageResult, todo: Sequence[HashTask], stop: Stop) -> None:
        cutoff = CutOff(stop if self._settings.has_deadline else None)  # without a deadline there is time to finish
        try:
            async with self._engines.lend(worked.message.bucket) as engine, cutoff:
                hash_one = partial(self._hash_one, worked, engine, stop, cutoff)
                await hash_many(hash_one, _stream(todo), self._permits, chunk_size=self._settings.chunk_size)
        except (BucketError, CallFailed) as error:
            # The bucket cannot be opened: that dooms its own objects, not the messages of other buckets.
            code = error.code if isinstance(error, CallFailed) else "BucketError"
            log.warning("run %s: %s", worked.message.run, harmless(str(error)))
            worked.failed += [Failed(task, code, retryable=False) for task in todo]

    async def _hash_one(
        self, worked: MessageResult, engine: Engine, stop: Stop, cutoff: CutOff, task: HashTask
    ) -> None:
        if stop and self._settings.has_deadline:
            worked.continued.append(replace(task, hops=task.hops + 1))
        elif (
            not self._settings.accept_cost
            and worked.message.run == EVENT_RUN
            and await self._left(worked, engine, cutoff, task)
        ):
            return
        elif task.size >= self._settings.large:
            await self._keep(worked, await self._hash_large(worked.message, engine, stop, task))
        else:
            await self._keep(worked, await self._hash_small(worked.message, engine, cutoff, task))

    async def _left(self, worked: MessageResult, engine: Engine, cutoff: CutOff, task: HashTask) -> bool:
        """True when it is not to be read. An event tells no storage class, so S3 is asked for it.

        In Intelligent-Tiering a new object lies in the frequent tier, where reading it changes nothing.
        """
        try:
            head = await cutoff.of(engine.head(task.key, task.version_id, checksum=False))
        except CallFailed as failure:
            if failure.status == 400:  # without its customer's key: GET says so, and gives no byte
                return False
            await self._keep(worked, classify(task, failure))
            return True
        if head is None:
            worked.failed.append(Failed(task, OUT_OF_TIME, retryable=False))
            return True
        if head.storage_class == "INTELLIGENT_TIERING" or charged(head.storage_class) is None:
            return False
        worked.counts += Counts(left_for_cost=1)
        return True

    async def _hash_small(self, message: HashMessage, engine: Engine, cutoff: CutOff, task: HashTask) -> Result:
        result = await cutoff.of(self._read(message, engine, task))
        if result is None:  # it begins anew: what stalls each time must come to an end
            return Failed(task, OUT_OF_TIME, retryable=False)
        return await self._record(message.bucket, result) if isinstance(result, Hashed) else result

    async def _hash_large(self, message: HashMessage, engine: Engine, stop: Stop, task: HashTask) -> Result | Waiting:
        settings = self._settings

        async def read(checkpoint: Mapping[str, Any] | None, save: Save) -> Result:
            result = await self._read(
                message,
                engine,
                task,
                stop=stop.__bool__,
                checkpoint=checkpoint,
                save=save,
                save_seconds=settings.save_seconds,
            )
            if isinstance(result, Paused) and settings.has_deadline and not result.gained:
                return Failed(task, OUT_OF_TIME, retryable=False)
            return result

        work = Work(
            bucket=message.bucket,
            key=task.key,
            version_id=task.version_id,
            etag=task.etag,
            algorithms=message.algorithms,
        )
        return await self._leased.hash(work, task, read, partial(self._record, message.bucket))

    async def _read(self, message: HashMessage, engine: Engine, task: HashTask, **further: Unpack[Options]) -> Result:
        settings = self._settings
        options: Options = {
            "bucket": message.bucket,
            "chunk_size": settings.chunk_size,
            "streams": settings.streams,
            "executor": self._executor,
            "memory": self._permits,
        }
        options.update(further)
        attempts = settings.in_place_attempts
        return await hash_patiently(engine, task, message.algorithms, attempts=attempts, sleep=self._sleep, **options)

    async def _record(self, bucket: str, hashed: Hashed) -> Result:
        conflict = await self._recording.record(bucket, hashed)
        return hashed if conflict is None else Failed(hashed.task, "DigestConflict", retryable=False)

    async def _keep(self, worked: MessageResult, result: Result | Waiting) -> None:
        match result:
            case Hashed():
                worked.counts += Counts(hashed=1)
            case Superseded():
                worked.counts += Counts(superseded=1)
            case Unhashable():
                worked.counts += Counts(unhashable=1)
            case Failed():
                worked.failed.append(result)
            case Waiting():
                worked.waiting.append(result)
            case Mismatch():
                await self._denounce(worked, result)
            case Paused():
                after = after_pause(result, self._settings)
                if isinstance(after, Failed):
                    worked.failed.append(after)
                else:
                    worked.continued.append(after)

    async def _denounce(self, worked: MessageResult, found: Mismatch) -> None:
        """S3's own checksum is of other bytes than those it gave us."""
        message, task = worked.message, found.task
        log_mismatch(message, found)
        detail = {"algorithm": found.algorithm, "digest": found.ours, "stored": found.stored, "source": "s3"}
        await self._ledger.note(message.bucket, [disagreed(task, detail)])
        worked.counts += Counts(mismatched=1)
        worked.failed.append(Failed(task, "ChecksumMismatch", retryable=False))


def after_pause(paused: Paused, settings: HashSettings) -> HashTask | Failed:
    """What is sent on of an object that was left unfinished; Failed where going on would lead nowhere."""
    task = paused.task
    following = replace(task, hops=task.hops + 1)
    if paused.checkpoint is not None:
        return replace(following, attempts=0)
    if not settings.has_deadline:
        return task
    if task.hops == 0:  # it may have come late in its invocation: the next one is wholly its own
        return following
    log.warning("an object of %d bytes cannot be finished here: %s", task.size, paused.reason)
    return Failed(task, "NoCarriedState", retryable=False)


async def _stream(tasks: Iterable[HashTask]) -> AsyncIterator[HashTask]:
    for task in tasks:
        yield task
