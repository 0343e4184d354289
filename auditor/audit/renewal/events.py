"""Renew the objects that the events on a queue name, batch by batch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final

from msgspec import Struct, field

from auditor.aio.stop import Stop
from auditor.audit.renewal.renew import Renewed, Renewer, open_renewer
from auditor.aws.sqs import BATCH, Queue, Received
from auditor.config.settings import Settings
from auditor.errors import AuditorError, MessageError
from auditor.hashing.queue.notification import decode_events
from auditor.hashing.queue.s3_event import ObjectEvent
from auditor.runs.latest import latest_runs
from auditor.runs.reading import RunReader
from auditor.runs.renewals import is_renewal
from auditor.runs.stores.base import Store
from auditor.s3.rate import RateLimit
from auditor.text import visible

log = logging.getLogger(__name__)

RENEWS: Final = frozenset({"created", "restored", "acl"})
"""The kinds of events after which an object is read. What was removed is seen by the next listing."""
POLL: Final = 5
"""Seconds for which one receive call waits for messages."""
VISIBILITY: Final = 300
"""Seconds that SQS hides a received message from others: a batch of ten events takes a few seconds."""

OpenRenewer = Callable[[RunReader, Settings, RateLimit], AbstractAsyncContextManager[Renewer]]
Told = Callable[[RunReader, Renewed], Awaitable[None]]
"""Called with each run whose objects were read, before their lines are written."""


class EventCounts(Struct):
    """The counts of one command or batch. failed: messages that come again."""

    messages: int = 0
    failed: int = 0
    renewed: Renewed = field(default_factory=Renewed)


class BatchOutcome(Struct, frozen=True):
    """The messages of a batch that are not done, by ID.

    failed: they must come again. malformed: no receipt makes them readable; the reason, which never quotes the body.
    """

    failed: frozenset[str]
    malformed: Mapping[str, str]


class BatchRenewer:
    """Renews the objects that batches of messages with events of S3 name.

    A message may come twice, and messages come in any order: an event only says which object to read. rate: the ceiling
    of calls of all batches. told: sends the alert on what was renewed; if it raises AuditorError, nothing is written
    and the messages come again. opening: opens a renewer for the objects of a run.
    """

    def __init__(
        self, store: Store, settings: Settings, rate: RateLimit, told: Told, *, opening: OpenRenewer = open_renewer
    ) -> None:
        self.counts = EventCounts()
        self._store = store
        self._settings = settings
        self._told = told
        self._opening = opening
        self._rate = rate

    async def renew(self, batch: Sequence[Received]) -> BatchOutcome:
        """Read the objects that the messages name, and return the messages that are not done."""
        keys: dict[str, dict[str, None]] = {}
        buckets: dict[str, set[str]] = {}
        malformed: dict[str, str] = {}
        for received in batch:
            try:
                events = [one for one in decode_events(received.body) if self._counts(one)]
            except MessageError as error:
                malformed[received.id] = str(error)
                continue
            for one in events:
                keys.setdefault(one.bucket, {})[one.key] = None
                buckets.setdefault(received.id, set()).add(one.bucket)
        broken = {bucket for bucket, names in keys.items() if not await self._renewed(bucket, list(names))}
        failed = {received.id for received in batch if not broken.isdisjoint(buckets.get(received.id, ()))}
        self.counts.messages += len(batch)
        self.counts.failed += len(failed) + len(malformed)
        return BatchOutcome(frozenset(failed), malformed)

    def _counts(self, event: ObjectEvent) -> bool:
        """True if the event's object is read. The renewals of an audited reports bucket lie in it: to read them after
        the event on each would write the next one, without an end.
        """
        return event.kind in RENEWS and not is_renewal(self._store, event.bucket, event.key)

    async def _renewed(self, bucket: str, keys: Sequence[str]) -> bool:
        """Renew the objects with these keys, and tell of them. Return False if that failed, so that the events must
        come again.
        """
        try:
            left = {versions: list(keys) for versions in (False, True)}
            runs = await asyncio.to_thread(latest_runs, self._store, bucket)
            if not runs:
                log.info("the bucket %s has no complete run yet: its first one reads these objects", bucket)
            for run in runs:
                await self._by(run, left)
        except AuditorError as error:
            log.error("events of the bucket %s will be redelivered: %s", bucket, visible(str(error)))
            return False
        return True

    async def _by(self, run: RunReader, left: dict[bool, list[str]]) -> None:
        """Renew the objects of the run's target, and take their keys off the list. left: by Target.versions."""
        target = (await asyncio.to_thread(lambda: run.begun_with)).target
        mine = [key for key in left[target.versions] if key.startswith(target.prefix)]
        if not mine:
            return
        async with self._opening(run, self._settings, self._rate) as renewer:
            renewed = await renewer.renew(mine, partial(self._told, run))
        left[target.versions] = [key for key in left[target.versions] if key not in set(mine)]
        self.counts.renewed += renewed


class EventRenewer:
    """Receives messages from a queue, and renews the objects that they name. Call run() once.

    A message is deleted once its objects are read and their lines are written; any other stays. idle: run() ends after
    so many seconds without a message.
    """

    def __init__(self, queue: Queue, renewer: BatchRenewer, stop: Stop, *, idle: float, poll: int = POLL) -> None:
        self._queue = queue
        self._renewer = renewer
        self._stop = stop
        self._idle = idle
        self._poll = poll

    async def run(self) -> EventCounts:
        """Work until the queue has been empty for `idle` seconds, or until the stop. Raises QueueError."""
        waited = 0.0
        while not self._stop and waited < self._idle:
            batch = await self._queue.receive(BATCH, wait=self._poll, visibility=VISIBILITY)
            waited = 0.0 if batch else waited + self._poll
            if not batch:
                continue
            outcome = await self._renewer.renew(batch)
            for name, reason in outcome.malformed.items():
                log.warning("message %s is malformed, and is left on the queue: %s", name, reason)
            left = outcome.failed | outcome.malformed.keys()
            await self._queue.delete([received.receipt for received in batch if received.id not in left])
        return self._renewer.counts
