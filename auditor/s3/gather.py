"""Read the facts of the listed objects concurrently, and deliver them in the listing's order, in bounded memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final, Protocol

from msgspec import Struct

from auditor.aio.ordered import in_order, one_ahead
from auditor.aio.stop import Stop
from auditor.model.object import Evidence, ObjectRef
from auditor.model.reuse import NO_FACTS, KnownFacts
from auditor.s3.calls import Caller
from auditor.s3.listing import Listed, within_limit

WINDOW: Final = 2000
"""Largest number of objects that are started and not yet delivered. A slow object delays at most this many objects."""

BATCH: Final = 200


class Gathered(Struct, frozen=True):
    """One step of the listing, with the facts of its object.

    evidence: None for a step without an object (delete markers).
    """

    step: Listed
    evidence: Evidence | None


class EvidenceReader(Protocol):
    """Reads the facts of an object; a failed call on one object gives the value Unread.

    facts: those that need no call.
    """

    async def read(self, ref: ObjectRef, facts: KnownFacts = NO_FACTS) -> Evidence: ...


Sink = Callable[[list[Gathered]], Awaitable[None]]


async def gather(
    pages: AsyncGenerator[list[Listed], None],
    reader: EvidenceReader,
    caller: Caller,
    stop: Stop,
    sink: Sink,
    *,
    calls_per_object: int,
    whole_keys: bool = False,
    window: int = WINDOW,
) -> bool:
    """Read the facts of the object in each step of the listing, and pass them to `sink` in the listing's order.

    Return True if the listing ended before any stop. whole_keys: never stop between two versions of one key, even if
    this means to wait for another page.

    There are at most as many tasks as permits, and at most `window` results that wait for the sink, which gets them in
    batches. A failed call on one object becomes an Unread in its evidence; an error that ends the run cancels all other
    work, and is raised itself. calls_per_object: largest number of calls for one object.
    """
    caller.calls_per_object = calls_per_object
    start = _Starter(reader, caller, stop)
    async with one_ahead(within_limit(pages, stop)) as ahead:
        return await in_order(ahead, start, sink, stop, window=window, batch=BATCH, whole_keys=whole_keys)


class _Starter:
    """Starts to read the object of each step of the listing; in_order() calls it with the steps.

    It waits for a permit, and returns a task that reads the object; None if no further object may be started. A step
    without an object, or with known facts, needs no task: its result is returned.
    """

    def __init__(self, reader: EvidenceReader, caller: Caller, stop: Stop) -> None:
        self._reader = reader
        self._caller = caller
        self._permits = caller.permits
        self._stop = stop

    async def __call__(
        self, group: asyncio.TaskGroup, step: Listed, same_key: bool
    ) -> asyncio.Task[Gathered] | Gathered | None:
        if step.ref is None or step.known is not None:
            return Gathered(step, step.known)
        await self._permits.acquire()
        if self._must_stop(step.ref) and not same_key:
            self._end(step.ref)
            return None
        return group.create_task(self._read(step, step.ref))

    def _must_stop(self, ref: ObjectRef) -> bool:
        """True if no further object may be started: the stop is set, or a limit leaves too little for all objects in
        flight. Call it after taking the object's permit, so that the object's own calls count too.
        """
        flag = self._caller.begin_object(ref.storage_class)
        if flag is not None:
            self._stop.set(f"the limit of {flag} was reached")
        return bool(self._stop)

    def _end(self, ref: ObjectRef) -> None:
        self._caller.end_object(ref.storage_class)
        self._permits.release()

    async def _read(self, step: Listed, ref: ObjectRef) -> Gathered:
        try:
            return Gathered(step, await self._reader.read(ref, step.facts or NO_FACTS))
        finally:
            self._end(ref)  # not in a callback, which runs later: _must_stop counts the permits in use
