"""Read the facts of each listed object, many at once, and hand them on in key order, in bounded memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

from auditor.aio.ordered import in_order, one_ahead
from auditor.aio.stop import Stop
from auditor.model.object import Evidence, ObjectRef
from auditor.model.record import record
from auditor.s3.calls import Caller
from auditor.s3.listing import Listed, within_limit
from auditor.s3.object_reader import ObjectReader

WINDOW: Final = 2000
"""Objects between the listing and the run folder; one slow object holds back no more than these."""

BATCH: Final = 200


@record()
class Gathered:
    """A step of the listing with the evidence of its object; None where it only passed delete markers."""

    step: Listed
    evidence: Evidence | None


Sink = Callable[[list[Gathered]], Awaitable[None]]


async def gather(
    pages: AsyncGenerator[list[Listed], None],
    reader: ObjectReader,
    caller: Caller,
    stop: Stop,
    sink: Sink,
    *,
    calls_per_object: int,
    whole_keys: bool = False,
    window: int = WINDOW,
) -> bool:
    """Read every step's object and hand batches to the sink, in the listing's order. True when the listing ended.

    whole_keys: stop between two keys only (a listing of versions), even where the next page must be waited for.

    There are never more tasks than permits, nor more than `window` results that wait for the sink. The first error
    that dooms the run cancels the rest and is raised as it is.
    """
    caller.calls_per_object = calls_per_object
    start = _Starter(reader, caller, stop)
    async with one_ahead(within_limit(pages, stop)) as ahead:
        return await in_order(ahead, start, sink, stop, window=window, batch=BATCH, whole_keys=whole_keys)


class _Starter:
    """Starts to read the object of a step, as soon as it has a permit."""

    def __init__(self, reader: ObjectReader, caller: Caller, stop: Stop) -> None:
        self._reader = reader
        self._caller = caller
        self._permits = caller.permits
        self._stop = stop

    async def __call__(
        self, group: asyncio.TaskGroup, step: Listed, same_key: bool
    ) -> asyncio.Task[Gathered] | Gathered | None:
        if step.ref is None:
            return None if self._stop and not same_key else Gathered(step, None)
        await self._permits.acquire()
        if self._must_stop() and not same_key:
            self._permits.release()
            return None
        return group.create_task(self._read(step, step.ref))

    def _must_stop(self) -> bool:
        """Call it with the permit in hand: the budget must suffice for this object's calls too."""
        caller = self._caller
        if caller.budget_left is not None and caller.short_of(caller.calls_per_object * self._permits.in_use):
            self._stop.set("the limit of --max-calls was reached")
        return bool(self._stop)

    async def _read(self, step: Listed, ref: ObjectRef) -> Gathered:
        try:
            return Gathered(step, await self._reader.read(ref))
        finally:
            self._permits.release()  # here, and not in a callback: the budget's check counts the permits in use
