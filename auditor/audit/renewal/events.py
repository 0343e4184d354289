"""Renew the objects that the events on a queue name, batch by batch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final

from auditor.aio.stop import Stop
from auditor.audit.renewal.renew import Renewed, Renewer, open_renewer
from auditor.aws.sqs import BATCH, Queue, Received
from auditor.config.settings import Settings
from auditor.errors import AuditorError, MessageError
from auditor.hashing.queue.notification import decode_events
from auditor.runs.reading import RunReader, latest_runs
from auditor.runs.stores.base import Store
from auditor.text import visible

log = logging.getLogger(__name__)

RENEWS: Final = frozenset({"created", "restored", "acl"})
"""The kinds of events after which an object is read. What was removed is seen by the next listing."""
POLL: Final = 5
"""Seconds for which one receive call waits for messages."""
VISIBILITY: Final = 300
"""Seconds that SQS hides a received message from others: a batch of ten events takes a few seconds."""

OpenRenewer = Callable[[RunReader, Settings], AbstractAsyncContextManager[Renewer]]
Told = Callable[[RunReader, Renewed], Awaitable[None]]
"""Called with each run whose objects were renewed."""


@dataclass(slots=True)
class EventCounts:
    """The counts of one command. failed: messages that stay on the queue."""

    messages: int = 0
    failed: int = 0
    renewed: Renewed = field(default_factory=Renewed)


class EventRenewer:
    """Receives messages with events of S3, and renews the objects that they name. Call run() once.

    A message is deleted once its objects are read and their lines are written. A message may come twice: its objects
    are read twice then. told: sends the alert on what was renewed. idle: run() ends after so many seconds without a
    message. opening: opens a renewer for the objects of a run.
    """

    def __init__(
        self,
        queue: Queue,
        store: Store,
        settings: Settings,
        told: Told,
        stop: Stop,
        *,
        idle: float,
        poll: int = POLL,
        opening: OpenRenewer = open_renewer,
    ) -> None:
        self._opening = opening
        self.counts = EventCounts()
        self._queue = queue
        self._store = store
        self._settings = settings
        self._told = told
        self._stop = stop
        self._idle = idle
        self._poll = poll

    async def run(self) -> EventCounts:
        """Work until the queue has been empty for `idle` seconds, or until the stop. Raises QueueError."""
        waited = 0.0
        while not self._stop and waited < self._idle:
            batch = await self._queue.receive(BATCH, wait=self._poll, visibility=VISIBILITY)
            waited = 0.0 if batch else waited + self._poll
            if batch:
                await self._renew(batch)
        return self.counts

    async def _renew(self, batch: Sequence[Received]) -> None:
        keys: dict[str, dict[str, None]] = {}
        buckets: dict[str, set[str]] = {}
        failed: set[str] = set()
        for received in batch:
            try:
                events = [one for one in decode_events(received.body) if one.kind in RENEWS]
            except MessageError as error:
                log.warning("message %s is malformed, and is left on the queue: %s", received.id, error)
                failed.add(received.id)
                continue
            for one in events:
                keys.setdefault(one.bucket, {})[one.key] = None
                buckets.setdefault(received.id, set()).add(one.bucket)
        broken = {bucket for bucket, names in keys.items() if not await self._renewed(bucket, list(names))}
        failed |= {received.id for received in batch if not broken.isdisjoint(buckets.get(received.id, ()))}
        self.counts.messages += len(batch)
        self.counts.failed += len(failed)
        await self._queue.delete([received.receipt for received in batch if received.id not in failed])

    async def _renewed(self, bucket: str, keys: Sequence[str]) -> bool:
        """Renew the objects with these keys, and tell of them. Return False if that failed, so that the events must
        come again.
        """
        try:
            left = {versions: list(keys) for versions in (False, True)}
            for run in await asyncio.to_thread(latest_runs, self._store, bucket):
                await self._by(run, left)
        except AuditorError as error:
            log.error("events of the bucket %s come again: %s", bucket, visible(str(error)))
            return False
        return True

    async def _by(self, run: RunReader, left: dict[bool, list[str]]) -> None:
        """Renew the objects of the run's target, and take their keys off the list. left: by Target.versions."""
        file = await asyncio.to_thread(lambda: run.bucket)
        if file is None:
            return  # a run of an earlier release does not say by which rules to judge
        target = file.target
        mine = [key for key in left[target.versions] if key.startswith(target.prefix)]
        if not mine:
            return
        async with self._opening(run, self._settings) as renewer:
            renewed = await renewer.renew(mine)
        left[target.versions] = [key for key in left[target.versions] if key not in set(mine)]
        self.counts.renewed += renewed
        await self._told(run, renewed)
