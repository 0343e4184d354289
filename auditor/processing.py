"""What is done with one queue message: hash what is not known, record it, and see to what failed."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Final

from auditor.dispatch import deliver
from auditor.enginepool import EnginePool
from auditor.errors import AuditorError, BucketError, CallFailed, DigestConflict, MessageError, QueueError
from auditor.hashing import (
    CHUNK_SIZE,
    IN_PLACE_ATTEMPTS,
    MIB,
    Failed,
    Hashed,
    Permits,
    Result,
    Superseded,
    Unhashable,
    hash_many,
    hash_patiently,
)
from auditor.ledgers.interface import Ledger
from auditor.letters import dead_letters, log_failures, malformed
from auditor.logs import bound
from auditor.messages import ALGORITHMS, HashMessage, HashTask, encode, pack
from auditor.models import ObjectRef
from auditor.notifications import TestEvent, decode_any
from auditor.queues import MAX_DELAY, Outgoing, Queue, Received

log = logging.getLogger(__name__)

FINAL: Final = frozenset({"DigestConflict", "SizeDiffers"})
"""Codes that another attempt cannot change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HashSettings:
    """algorithms: what S3's own events ask for. concurrency: objects at once. bytes_in_flight, chunk_size: bytes.

    max_attempts: failures after which an object goes to the dead-letter queue. retry_base: seconds, the first delay of
    a message that is sent again; it doubles up to 900.
    """

    algorithms: tuple[str, ...] = ALGORITHMS[:1]
    concurrency: int = 16
    bytes_in_flight: int = 256 * MIB
    chunk_size: int = CHUNK_SIZE
    max_attempts: int = 5
    in_place_attempts: int = IN_PLACE_ATTEMPTS
    retry_base: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What became of messages and their objects.

    failed: objects given up, and malformed messages; of these, dead_lettered are on the dead-letter queue. resent:
    objects that failed and were sent again, to be counted by who gets them next.
    """

    messages: int = 0
    hashed: int = 0
    known: int = 0
    superseded: int = 0
    unhashable: int = 0
    failed: int = 0
    dead_lettered: int = 0
    resent: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in Counts.__slots__})


@dataclass(frozen=True, slots=True)
class Processed:
    """What a message came to. hide: None when it can be deleted, else the seconds after which it shall come again.

    due: seconds after which what was sent again can be received. doom: why no message at all can be worked on.
    """

    counts: Counts
    hide: int | None = None
    due: int = 0
    doom: AuditorError | None = None


@dataclass(slots=True)
class _Work:
    """One message of ours while it is worked on."""

    message: HashMessage
    counts: Counts = field(default_factory=Counts)
    failed: list[Failed] = field(default_factory=list)


class Processor:
    """Works on messages, any number at once; all share the permits, so that their objects stay within the settings.

    Idempotent: a message that comes twice finds its digests known.
    """

    def __init__(
        self,
        queue: Queue,
        dead_letters: Queue | None,
        ledger: Ledger,
        engines: EnginePool[str],
        settings: HashSettings,
        *,
        executor: Executor | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._queue = queue
        self._dead_letters = dead_letters
        self._ledger = ledger
        self._engines = engines
        self._settings = settings
        self._executor = executor
        self._sleep = sleep
        self._permits = Permits(settings.concurrency, settings.bytes_in_flight)

    @property
    def queue(self) -> Queue:
        return self._queue

    async def process(self, received: Received) -> Processed:
        """Do all that the message asks. Raises nothing: one bad message is no reason to drop its neighbours."""
        try:
            return await self._process(received)
        except AuditorError as error:  # ledger, credentials, settings: every message would meet the same
            log.error("message %s is left on the queue: %s", received.id, error)
            return Processed(Counts(messages=1), hide=self.backoff(received.receive_count), doom=error)
        except Exception:
            log.exception("message %s is left on the queue: a fault of the worker", received.id)
            return Processed(Counts(messages=1, failed=1), hide=self.backoff(received.receive_count))

    async def _process(self, received: Received) -> Processed:
        try:
            messages = decode_any(received.body, self._settings.algorithms)
        except MessageError as error:
            return await self._malformed(received, str(error))
        if isinstance(messages, TestEvent):
            return Processed(Counts(messages=1))
        works = [_Work(message) for message in messages]
        for work in works:
            with bound(run=work.message.run, bucket=work.message.bucket):
                await self._hash(work)
                log.info("%s", _told(work))
        return await self._settle(received, works)

    def backoff(self, failures: int) -> int:
        """Seconds until the next attempt after so many failures: jittered, doubling, 900 at most."""
        longest = min(MAX_DELAY, self._settings.retry_base * 2.0 ** min(failures - 1, 20))
        return round(longest * random.uniform(0.5, 1.0))  # noqa: S311 - spreads retries, guards nothing

    async def _hash(self, work: _Work) -> None:
        message = work.message
        refs = [ObjectRef(task.key, task.etag, task.size, "", task.version_id) for task in message.tasks]
        known = await self._ledger.known(message.bucket, refs, message.algorithms)
        todo: list[HashTask] = []
        for task, digests in zip(message.tasks, known, strict=True):
            if all(algorithm in digests for algorithm in message.algorithms):
                work.counts += Counts(known=1)
            elif task.attempts >= self._settings.max_attempts:
                work.failed.append(Failed(task, "TooManyAttempts", retryable=False))
            else:
                todo.append(task)
        if todo:
            await self._hash_unknown(work, todo)

    async def _hash_unknown(self, work: _Work, todo: Sequence[HashTask]) -> None:
        message, settings = work.message, self._settings
        try:
            async with self._engines.lend(message.bucket) as engine:

                async def hash_one(task: HashTask) -> None:
                    result = await hash_patiently(
                        engine,
                        task,
                        message.algorithms,
                        attempts=settings.in_place_attempts,
                        chunk_size=settings.chunk_size,
                        executor=self._executor,
                        sleep=self._sleep,
                    )
                    await self._keep(work, result)

                await hash_many(hash_one, _stream(todo), self._permits, chunk_size=settings.chunk_size)
        except (BucketError, CallFailed) as error:
            # The bucket cannot be opened: that dooms its own objects, not the messages of other buckets.
            code = error.code if isinstance(error, CallFailed) else "BucketError"
            work.failed += [Failed(task, code, retryable=False) for task in todo]

    async def _keep(self, work: _Work, result: Result) -> None:
        match result:
            case Hashed():
                await self._record(work, result)
            case Superseded():
                work.counts += Counts(superseded=1)
            case Unhashable():
                work.counts += Counts(unhashable=1)
            case Failed():
                work.failed.append(result)

    async def _record(self, work: _Work, result: Hashed) -> None:
        try:
            await self._ledger.record(result.entry(work.message.bucket))
        except DigestConflict:
            work.failed.append(Failed(result.task, "DigestConflict", retryable=False))
        else:
            work.counts += Counts(hashed=1)

    async def _settle(self, received: Received, works: Sequence[_Work]) -> Processed:
        """Dead letters first, then what is sent again: what cannot be put away must not be multiplied."""
        counts = sum((work.counts for work in works), Counts(messages=1))
        lost: list[Outgoing] = []
        again: list[Outgoing] = []
        given_up = resent = 0
        for work in works:
            log_failures(received, work.message, work.failed)
            final = [one for one in work.failed if self._is_final(one)]
            rest = [one.task for one in work.failed if not self._is_final(one)]
            lost += dead_letters(received, work.message, final)
            again += self._resends(work.message, rest)
            given_up += len(final)
            resent += len(rest)
        if await self._put_away(received, lost, again):
            counts += Counts(failed=given_up, dead_lettered=given_up, resent=resent)
            return Processed(counts, due=max((one.delay for one in again), default=0))
        counts += Counts(failed=given_up + resent)
        return Processed(counts, hide=self.backoff(received.receive_count))

    async def _put_away(self, received: Received, lost: Sequence[Outgoing], again: Sequence[Outgoing]) -> bool:
        """True when every failed object is on a queue, so that the message can be deleted."""
        if lost and self._dead_letters is None:
            return False
        try:
            if lost and self._dead_letters is not None:
                await deliver(self._dead_letters, lost, sleep=self._sleep)
            if again:
                await deliver(self._queue, again, sleep=self._sleep)
        except QueueError as error:
            log.warning("message %s is left on the queue: %s", received.id, error)
            return False
        return True

    async def _malformed(self, received: Received, reason: str) -> Processed:
        log.warning("message %s is malformed: %s", received.id, reason)
        if await self._put_away(received, [malformed(received, reason)], []):
            return Processed(Counts(messages=1, failed=1, dead_lettered=1))
        return Processed(Counts(messages=1, failed=1), hide=self.backoff(received.receive_count))

    def _is_final(self, failed: Failed) -> bool:
        return failed.code in FINAL or failed.task.attempts + 1 >= self._settings.max_attempts

    def _resends(self, message: HashMessage, tasks: Sequence[HashTask]) -> list[Outgoing]:
        next_try = (replace(task, attempts=task.attempts + 1) for task in tasks)
        return [
            Outgoing(encode(one), delay=self.backoff(max(task.attempts for task in one.tasks)))
            for one in pack(message.run, message.bucket, message.algorithms, next_try)
        ]


def _told(work: _Work) -> str:
    counts, tasks = work.counts, len(work.message.tasks)
    return (
        f"{tasks} objects of a message: {counts.hashed} hashed, {counts.known} known, {counts.superseded} superseded,"
        f" {counts.unhashable} unhashable, {len(work.failed)} failed"
    )


async def leave(queue: Queue, received: Received, seconds: int) -> None:
    """Let a message come again after so many seconds; when even that fails, its visibility timeout does it later."""
    try:
        await queue.hide(received.receipt, seconds)
    except QueueError as error:
        log.warning("message %s keeps its visibility timeout: %s", received.id, error)


async def _stream(tasks: Iterable[HashTask]) -> AsyncIterator[HashTask]:
    for task in tasks:
        yield task
