"""Hash the objects of one queue message: skip objects with digests, hash small objects side by side, and large objects
under a lease. All digests that arrive during one write into the ledger go into the next write together.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from auditor.aio.budget import InFlightBudget
from auditor.aio.stop import CutOff, Stop, cut_off_when
from auditor.aws.failures import is_transient
from auditor.errors import BucketError, CallFailed, DigestConflict
from auditor.hashing.digest.object import hash_patiently
from auditor.hashing.digest.one_pass import BUFFERS
from auditor.hashing.digest.options import Checkpoint, HashOptions, Save
from auditor.hashing.digest.result import Failed, Hashed, Mismatch, Paused, Result, Superseded, Unhashable, classify
from auditor.hashing.limits import BYTES_IN_FLIGHT
from auditor.hashing.queue.message import HashMessage, HashTask
from auditor.hashing.queue.notification import EVENT_RUN
from auditor.hashing.worker.counts import Counts
from auditor.hashing.worker.dead_letters import log_mismatch
from auditor.hashing.worker.lease import LeasedHasher, Waiting
from auditor.hashing.worker.options import WorkerOptions
from auditor.ledger.base import DigestStore, HealableDigests, Ledger
from auditor.ledger.history import disagreed
from auditor.ledger.leases import Work
from auditor.ledger.matching import has_digests, healable_keys
from auditor.model.dates import now_in_utc
from auditor.s3.engines.base import Body, Engine, Span
from auditor.s3.engines.pool import EnginePool
from auditor.s3.paced_reads import Reads
from auditor.s3.storage_class import charged
from auditor.text import harmless

log = logging.getLogger(__name__)

OUT_OF_TIME: Final = "OutOfTime"
"""The error code of an object that made no progress before the worker's deadline."""


class MessageResult(Struct):
    """The results for the objects of one queue message."""

    message: HashMessage
    counts: Counts = field(default_factory=Counts)
    failed: list[Failed] = field(default_factory=list)
    continued: list[HashTask] = field(default_factory=list)
    """Unfinished objects, which are sent to the queue again at once."""
    waiting: list[Waiting] = field(default_factory=list)
    """Objects whose lease another worker has, each with the time until the lease may be free."""

    def fail(self, task: HashTask, code: str, *, outage: bool = False) -> None:
        self.failed.append(Failed(task, code, retryable=False, outage=outage))

    def sentence(self) -> str:
        counts, tasks = self.counts, len(self.message.tasks)
        return (
            f"{tasks} objects of a message: {counts.hashed} hashed, {counts.known} known,"
            f" {counts.superseded} superseded, {counts.unhashable} unhashable, {len(self.failed)} failed,"
            f" {len(self.continued)} continued, {len(self.waiting)} waiting,"
            f" {counts.left_for_cost} left because of their cost"
        )


class MessageHasher:
    """Hashes the objects of queue messages, of several messages at once, within one limit of memory.

    clock: returns seconds since the epoch, by which leases expire.
    """

    def __init__(
        self,
        ledger: Ledger,
        engines: EnginePool[str],
        options: WorkerOptions,
        executor: Executor | None,
        sleep: Callable[[float], Awaitable[None]],
        clock: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._engines = engines
        self._options = options
        self._permits = InFlightBudget(options.concurrency, BYTES_IN_FLIGHT)
        self._hashing = HashOptions(
            buffer_size=options.buffer_size,
            streams=options.streams,
            executor=executor,
            memory=self._permits,
            save_seconds=options.save_seconds,
            sleep=sleep,
        )
        self._writer = BatchWriter(ledger)
        owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(6)}"
        self._leased = LeasedHasher(ledger, owner, options.lease_seconds, clock)

    async def hash(self, message: HashMessage, stop: Stop) -> MessageResult:
        """Hash the objects of a message, and return the results.

        Raises LedgerError or CredentialsError, which every further message would meet.
        """
        result = MessageResult(message)
        tasks = await self._tasks_to_hash(result)
        if tasks:
            await self._hash_all(result, tasks, stop)
        return result

    async def _tasks_to_hash(self, result: MessageResult) -> list[HashTask]:
        """Return the objects that must be hashed. Count the objects that have digests in the ledger, and fail the
        objects that were tried too often.
        """
        message, options = result.message, self._options
        known = await self._ledger.known(message.bucket, message.tasks, message.algorithms)
        tasks: list[HashTask] = []
        if any(isinstance(row, HealableDigests) for row in known):
            result.counts += Counts(healed=await self._ledger.heal(message.bucket, healable_keys(message.tasks, known)))
        for task, digests in zip(message.tasks, known, strict=True):
            if all(algorithm in digests for algorithm in message.algorithms):
                result.counts += Counts(known=1)
            elif task.attempts >= options.max_attempts:
                result.fail(task, "TooManyAttempts")
            elif task.hops > options.max_hops:
                result.fail(task, "TooManyHops")
            else:
                tasks.append(task)
        return tasks

    async def _hash_all(self, result: MessageResult, tasks: Sequence[HashTask], stop: Stop) -> None:
        # Calls are cut off only if the process has a deadline; else there is time to finish them.
        cutting = cut_off_when(stop if self._options.has_deadline else None)
        try:
            async with self._engines.lend(result.message.bucket) as engine, cutting as cutoff:
                hash_one = partial(self._hash_one, result, engine, stop, cutoff)
                await self._permits.for_each(tasks, hash_one, most=BUFFERS * self._options.buffer_size)
        except (BucketError, CallFailed) as error:
            # If a bucket cannot be opened, only its own objects fail; messages of other buckets continue.
            cause = error if isinstance(error, CallFailed) else error.__cause__
            outage = isinstance(cause, CallFailed) and is_transient(cause)
            code = cause.code if isinstance(cause, CallFailed) and (outage or cause is error) else "BucketError"
            log.warning("run %s: %s", result.message.run, harmless(str(error)))
            for task in tasks:
                result.fail(task, code, outage=outage)

    async def _hash_one(
        self, result: MessageResult, engine: Engine, stop: Stop, cutoff: CutOff, task: HashTask
    ) -> None:
        message, options = result.message, self._options
        if options.has_deadline and stop.reason is not None:
            result.continued.append(replace(task, hops=task.hops + 1))
            return
        ask_cost = not options.accept_cost and message.run == EVENT_RUN
        if ask_cost and not await self._may_read(result, engine, cutoff, task):
            return
        hash_it = self._hash_large if task.size >= options.large else self._hash_small
        await self._count(result, await hash_it(message, engine, stop, cutoff, task))

    async def _may_read(self, result: MessageResult, engine: Engine, cutoff: CutOff, task: HashTask) -> bool:
        """True if reading a new object costs nothing extra. Otherwise the object's result is added to `result`.

        S3's event does not name the storage class, so a HEAD asks for it. A new object in Intelligent-Tiering is still
        in the frequent-access tier, and reading the object does not move it. cutoff: ends the HEAD at a stop.
        """
        try:
            async with cutoff.block() as timeout:
                head = await engine.head(task.key, task.version_id, checksum=False)
        except CallFailed as failure:
            if failure.status == 400:  # a customer's key encrypts it: GET then fails with that reason, at no cost
                return True
            await self._count(result, classify(task, failure))
            return False
        if timeout.expired():
            result.fail(task, OUT_OF_TIME, outage=True)
            return False
        if head.storage_class == "INTELLIGENT_TIERING" or charged(head.storage_class) is None:
            return True
        result.counts += Counts(left_for_cost=1)
        return False

    async def _hash_small(
        self, message: HashMessage, engine: Engine, stop: Stop, cutoff: CutOff, task: HashTask
    ) -> Result:
        options = replace(self._hashing, bucket=message.bucket)
        reads = _Reads(engine)
        async with cutoff.block() as timeout:
            found = await hash_patiently(reads, task, message.algorithms, options)
        if timeout.expired():  # the next attempt starts anew, so the attempts must be counted
            return Failed(task, OUT_OF_TIME, retryable=False, outage=not reads.answered)
        return await self._record(message.bucket, found) if isinstance(found, Hashed) else found

    async def _hash_large(
        self, message: HashMessage, engine: Engine, stop: Stop, cutoff: CutOff, task: HashTask
    ) -> Result | Waiting:
        async def read(checkpoint: Checkpoint | None, save: Save) -> Result:
            options = replace(self._hashing, bucket=message.bucket, stop=stop.is_set, save=save)
            found = await hash_patiently(engine, task, message.algorithms, options, checkpoint)
            if isinstance(found, Paused) and self._options.has_deadline and not found.gained:
                return Failed(task, OUT_OF_TIME, retryable=False, outage=True)
            return found

        work = Work(message.bucket, task.key, task.version_id, task.etag, message.algorithms)
        return await self._leased.hash(work, task, read, partial(self._record, message.bucket))

    async def _record(self, bucket: str, hashed: Hashed) -> Result:
        written = await self._writer.record(bucket, hashed)
        if isinstance(written, DigestConflict):
            return Failed(hashed.task, "DigestConflict", retryable=False)
        if not written and not await has_digests(self._ledger, bucket, hashed.task, hashed.digests):
            return Failed(hashed.task, "LedgerFault", retryable=False)
        return hashed

    async def _count(self, result: MessageResult, found: Result | Waiting) -> None:
        match found:
            case Hashed():
                result.counts += Counts(hashed=1)
            case Superseded():
                result.counts += Counts(superseded=1)
            case Unhashable():
                result.counts += Counts(unhashable=1)
            case Failed():
                result.failed.append(found)
            case Waiting():
                result.waiting.append(found)
            case Mismatch():
                await self._note_mismatch(result, found)
            case Paused():
                after = after_pause(found, self._options)
                if isinstance(after, Failed):
                    result.failed.append(after)
                else:
                    result.continued.append(after)

    async def _note_mismatch(self, result: MessageResult, found: Mismatch) -> None:
        """Log that an object's bytes contradict S3's checksum, write a "mismatch" event into the history, and fail the
        object.
        """
        message, task = result.message, found.task
        log_mismatch(message, found)
        detail = {"algorithm": found.algorithm, "digest": found.ours, "stored": found.stored, "source": "s3"}
        await self._ledger.note(message.bucket, [disagreed(task, detail)])
        result.counts += Counts(mismatched=1)
        result.fail(task, "ChecksumMismatch")


class _Pending(Struct, eq=False):
    """The digests of one object, until the ledger has them.

    written: the ledger's answer; None before the write.
    """

    bucket: str
    hashed: Hashed
    written: bool | DigestConflict | None = None


class BatchWriter(Struct, eq=False):
    """Writes the digests of all objects that a process hashes, many in one round trip or disk sync."""

    ledger: DigestStore
    pending: list[_Pending] = field(default_factory=list)
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def record(self, bucket: str, hashed: Hashed) -> bool | DigestConflict:
        """Write an object's digests into the ledger, and wait until the ledger has them.

        Return the answer of DigestStore.record_many: a DigestConflict if the ledger has another digest of the object.
        Raises LedgerError.
        """
        mine = _Pending(bucket, hashed)
        self.pending.append(mine)
        try:
            async with self.writing:
                if mine.written is None:
                    await self._write()
        finally:
            # If this write fails or is cancelled, the other callers still write their own entries.
            if mine in self.pending:
                self.pending.remove(mine)
        return mine.written or False

    async def _write(self) -> None:
        batch = list(self.pending)
        now = now_in_utc()
        found = await self.ledger.record_many([one.hashed.entry(one.bucket, now) for one in batch])
        for one, written in zip(batch, found, strict=True):
            one.written = written
        self.pending = [one for one in self.pending if one.written is None]


class _Reads(Struct, eq=False):
    """Reads objects through an engine. answered: True once S3 has sent an object's first bytes."""

    engine: Reads
    answered: bool = False

    @asynccontextmanager
    async def get(
        self, key: str, version_id: str | None, etag: str | None, span: Span | None = None
    ) -> AsyncIterator[Body]:
        async with self.engine.get(key, version_id, etag, span) as body:
            self.answered = True
            yield body


def after_pause(paused: Paused, options: WorkerOptions) -> HashTask | Failed:
    """Return the task with which another worker continues an unfinished object; Failed if no worker could finish it."""
    task = paused.task
    following = replace(task, hops=task.hops + 1)
    if paused.checkpoint is not None:
        return replace(following, attempts=0)
    if not options.has_deadline:
        return task
    if task.hops == 0:  # this invocation may have reached the object late; the next one begins with it
        return following
    log.warning("an object of %d bytes cannot be finished here: %s", task.size, paused.reason)
    return Failed(task, "NoCarriedState", retryable=False)
