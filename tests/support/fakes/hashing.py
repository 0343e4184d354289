"""Small working fakes for hashing: bodies, engines, a queue with its own time."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from auditor.aws.sqs import Outgoing, Queue, Received, RefusedEntry
from auditor.errors import BucketError, CallFailed, QueueError
from auditor.hashing.queue.message import HashMessage, HashTask, encode
from auditor.hashing.worker.options import WorkerOptions
from auditor.hashing.worker.processor import Processor
from auditor.ledger.base import Ledger
from auditor.model.object import Acl, Head, ObjectRef
from auditor.s3.engines.base import Body, Engine, ListQuery, Page, Position, Span
from auditor.s3.engines.pool import EnginePool
from auditor.s3.rate import RateLimit
from tests.conformance.memory import MemoryBody


class GetOnly:
    """An engine with GetObject alone."""

    open_connections = 0

    def keep_idle(self, connections: int) -> None:
        raise NotImplementedError

    async def list_page(self, query: ListQuery, position: Position | None) -> Page:
        raise NotImplementedError

    async def get_acl(self, key: str, version_id: str | None) -> Acl:
        raise NotImplementedError

    async def head(self, key: str, version_id: str | None, *, checksum: bool) -> Head:
        raise NotImplementedError


@dataclass(slots=True)
class OneObject(GetOnly):
    """An engine with one body, after a number of failures. asked: arguments of its calls."""

    body: MemoryBody
    failures: list[CallFailed] = field(default_factory=list)
    asked: list[tuple[str, str | None, str | None]] = field(default_factory=list)

    def get(
        self, key: str, version_id: str | None, etag: str | None, span: Span | None = None
    ) -> AbstractAsyncContextManager[Body]:
        self.asked.append((key, version_id, etag))
        return self._get(span)

    @asynccontextmanager
    async def _get(self, span: Span | None) -> AsyncIterator[Body]:
        if self.failures:
            raise self.failures.pop(0)
        yield self.body.of(span)


@dataclass(slots=True)
class Store(GetOnly):
    """A bucket's objects by key, current versions only. failures: errors of the next reads of a key. stored: digests
    by key that S3 sends with the bytes.

    hold: an event that reads wait for, or None. reads: keys in the order of their reads.
    """

    objects: dict[str, bytes] = field(default_factory=dict)
    failures: dict[str, list[CallFailed]] = field(default_factory=dict)
    stored: dict[str, dict[str, str]] = field(default_factory=dict)
    hold: asyncio.Event | None = None
    reads: list[str] = field(default_factory=list)
    now: int = 0
    most: int = 0

    def get(
        self, key: str, version_id: str | None, etag: str | None, span: Span | None = None
    ) -> AbstractAsyncContextManager[Body]:
        return self._get(key, etag, span)

    @asynccontextmanager
    async def _get(self, key: str, etag: str | None, span: Span | None) -> AsyncIterator[Body]:
        self.reads.append(key)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            if self.hold is not None:
                await self.hold.wait()
            if self.failures.get(key):
                raise self.failures[key].pop(0)
            if key not in self.objects:
                raise CallFailed("GetObject", "NoSuchKey", 404)
            data = self.objects[key]
            if etag not in (None, etag_of(data)):
                raise CallFailed("GetObject", "PreconditionFailed", 412)
            yield MemoryBody(data, len(data), etag_of(data), stored=self.stored.get(key, {})).of(span)
        finally:
            self.now -= 1


def etag_of(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


@dataclass(slots=True)
class _Waiting:
    message: Received
    visible_at: float


class MemoryQueue:
    """A queue in memory, with a time of its own.

    Only an empty receive takes time: it waits for the next message, as long as it may. While messages are in hand
    (`busy`) it gives the loop a turn instead, and no time passes.
    refusals: for each coming `send`, its refused entries with their codes. broken: an error that every call raises.
    on_receive: called in each receive. max_receives: receipts after which the queue itself moves a message to the dead
    letters, without a reason.
    """

    def __init__(self, dead_letters: MemoryQueue | None = None, max_receives: int | None = None) -> None:
        self.time = 0.0
        self.max_receives = max_receives
        self.sent: list[Outgoing] = []
        self.sends = 0
        self.hidden: list[tuple[str, int]] = []
        self.deleted: list[str] = []
        self.refusals: list[Callable[[Sequence[Outgoing]], Iterable[RefusedEntry]]] = []
        self.broken: QueueError | None = None
        self.refuses_hide = False
        self.on_receive: Callable[[], None] = lambda: None
        self.busy: Callable[[], bool] = lambda: False
        self._waiting: list[_Waiting] = []
        self.dead_letters = dead_letters
        self._ids = itertools.count(1)

    def put(self, body: str, delay: int = 0) -> Received:
        number = next(self._ids)
        received = Received(f"id-{number}", f"receipt-{number}", body, 0)
        self._waiting.append(_Waiting(received, self.time + delay))
        return received

    @property
    def left(self) -> list[Received]:
        """The messages on the queue, hidden or not."""
        return [one.message for one in self._waiting]

    async def send(self, entries: Sequence[Outgoing]) -> list[RefusedEntry]:
        self._check()
        self.sends += 1
        refused = list(self.refusals.pop(0)(entries)) if self.refusals else []
        for entry in entries:
            if not any(one.entry is entry for one in refused):
                self.sent.append(entry)
                self.put(entry.body, entry.delay)
        return refused

    async def receive(self, limit: int, *, wait: int, visibility: int) -> list[Received]:
        self._check()
        await asyncio.sleep(0)
        self.on_receive()
        ready = self._ready()
        if not ready and self.busy():
            await asyncio.sleep(0.001)
        elif not ready:
            self.time = min([self.time + wait, *(one.visible_at for one in self._waiting)])
            ready = self._ready()
        ready = ready[:limit]
        for one in ready:
            one.visible_at = self.time + visibility
            old = one.message
            one.message = Received(old.id, old.receipt, old.body, old.receive_count + 1)
        return [one.message for one in ready]

    async def delete(self, receipts: Sequence[str]) -> None:
        self._check()
        self.deleted += receipts
        self._waiting = [one for one in self._waiting if one.message.receipt not in receipts]

    async def hide(self, receipt: str, seconds: int) -> None:
        if self.refuses_hide:
            raise QueueError("the queue refuses ChangeMessageVisibility")
        self.hidden.append((receipt, seconds))
        for one in self._waiting:
            if one.message.receipt == receipt:
                one.visible_at = self.time + seconds

    async def dead_letter_queue(self) -> Queue | None:
        return self.dead_letters

    def _ready(self) -> list[_Waiting]:
        ready = [one for one in self._waiting if one.visible_at <= self.time]
        limit = self.max_receives
        for one in ready:
            if self.dead_letters is not None and limit is not None and one.message.receive_count >= limit:
                self._waiting.remove(one)
                self.dead_letters.sent.append(Outgoing(one.message.body))
        return [one for one in ready if one in self._waiting]

    def _check(self) -> None:
        if self.broken is not None:
            raise self.broken


class Buckets:
    """Opens the store of each bucket that exists."""

    def __init__(self, **stores: Store) -> None:
        self.stores = stores

    @asynccontextmanager
    async def __call__(self, bucket: str) -> AsyncIterator[Engine]:
        if bucket not in self.stores:
            raise BucketError(f"there is no bucket named {bucket!r}")
        yield self.stores[bucket]


class CountedRate(RateLimit):
    """No ceiling; counts its turns."""

    def __init__(self) -> None:
        super().__init__(None)
        self.turns = 0

    async def take(self) -> None:
        self.turns += 1


def processor_of(queue: MemoryQueue, ledger: Ledger, store: Store, options: WorkerOptions | None = None) -> Processor:
    """A processor of the messages of one bucket, which pauses no longer than other tasks need."""
    engines = EnginePool(Buckets(bucket=store))
    return Processor(queue, queue.dead_letters, ledger, engines, options or WorkerOptions(), sleep=no_pause)


async def no_pause(_: float) -> None:
    await asyncio.sleep(0)


async def digests_in(ledger: Ledger, store: Store) -> dict[str, str]:
    """The sha256 of each of the store's objects that the ledger knows."""
    refs = [ObjectRef(key, etag_of(data), len(data), "") for key, data in store.objects.items()]
    found = zip(refs, await ledger.known("bucket", refs, ["sha256"]), strict=True)
    return {ref.key: known["sha256"] for ref, known in found if known}


def sha256_of(objects: Mapping[str, bytes]) -> dict[str, str]:
    return {key: hashlib.sha256(data).hexdigest() for key, data in objects.items()}


def message_of(store: Store, *keys: str, attempts: int = 0, bucket: str = "bucket") -> str:
    """A queue message for the SHA-256 of the keys, with the store's present objects."""
    tasks = [
        HashTask(key, None, etag_of(store.objects.get(key, b"")), len(store.objects.get(key, b"")), attempts)
        for key in keys
    ]
    return encode(HashMessage("run", bucket, ("sha256",), tuple(tasks)))


async def until(condition: Callable[[], bool]) -> None:
    """Wait, turn by turn of the loop, until the condition holds."""
    for _ in range(5000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never came to be")
