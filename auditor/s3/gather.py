"""Read the facts of each listed object, many at once, and hand them on in key order, in bounded memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Final, TypeVar

from auditor.aio.groups import task_group
from auditor.aio.stop import Stop
from auditor.errors import CallFailed
from auditor.model.object import Evidence, ObjectRef
from auditor.model.record import record
from auditor.s3.calls import Caller
from auditor.s3.listing import Listed
from auditor.s3.object_reader import ObjectReader

T = TypeVar("T")
WINDOW: Final = 2000
"""Objects between the listing and the run folder; one slow object holds back no more than these."""

BATCH: Final = 200


@record()
class Gathered:
    """A step of the listing with what was read of its object; evidence None: only delete markers were passed."""

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

    Tasks alive are never more than permits; results waiting for the sink never more than `window`. The first error
    that dooms the run cancels the rest and is raised as it is.
    """
    run = _Run(reader, caller, stop, sink, calls_per_object, whole_keys, window)
    return await run.all(pages)


class _Run:
    def __init__(
        self,
        reader: ObjectReader,
        caller: Caller,
        stop: Stop,
        sink: Sink,
        calls_per_object: int,
        whole_keys: bool,
        window: int,
    ) -> None:
        self._reader = reader
        self._caller = caller
        self._stop = stop
        self._sink = sink
        caller.calls_per_object = calls_per_object
        self._whole_keys = whole_keys
        self._listed: asyncio.Queue[list[Listed] | None] = asyncio.Queue(1)
        self._started: asyncio.Queue[tuple[Listed, asyncio.Task[Evidence] | None] | None] = asyncio.Queue(window)

    async def all(self, pages: AsyncGenerator[list[Listed], None]) -> bool:
        async with aclosing(pages), task_group() as group:
            lister = group.create_task(self._list(pages))
            group.create_task(self._drain())
            ended = await self._start_all(group)
            lister.cancel()
            await self._started.put(None)
        return ended

    async def _list(self, pages: AsyncGenerator[list[Listed], None]) -> None:
        try:
            async for page in pages:
                await self._listed.put(page)
        except CallFailed as failure:
            self._stop.set(f"the limit of --max-calls was reached ({failure.code})")
        await self._listed.put(None)

    async def _start_all(self, group: asyncio.TaskGroup) -> bool:
        """Start a task for each object, a permit first; stops between two keys, never between versions of one."""
        last: str | None = None
        while True:
            page = await self._next_page()
            if page is None:
                return not self._stop
            for step in page:
                if not await self._start(group, step, same_key=step.key == last):
                    return False
                last = step.key

    async def _next_page(self) -> list[Listed] | None:
        if self._whole_keys:
            return await self._listed.get()
        if self._stop and self._listed.empty():
            return None
        return await self._stop.race(self._listed.get())

    async def _start(self, group: asyncio.TaskGroup, step: Listed, *, same_key: bool) -> bool:
        """False: the run stops before this step. The budget is looked at last, with the permit in hand."""
        if step.ref is None:
            if self._stop and not same_key:
                return False
            await self._started.put((step, None))
            return True
        await self._caller.permits.acquire()
        if self._must_stop() and not same_key:
            self._caller.permits.release()
            return False
        task = group.create_task(self._read(step.ref))
        await self._started.put((step, task))
        return True

    def _must_stop(self) -> bool:
        caller = self._caller
        if caller.budget_left is not None and caller.short_of(caller.calls_per_object * caller.permits.in_use):
            self._stop.set("the limit of --max-calls was reached")
        return bool(self._stop)

    async def _read(self, ref: ObjectRef) -> Evidence:
        try:
            return await self._reader.read(ref)
        finally:
            self._caller.permits.release()

    async def _drain(self) -> None:
        """Hand on what is ready, in order; a batch is what has gathered meanwhile, never waited for."""
        batch: list[Gathered] = []
        while (item := await self._started.get()) is not None:
            step, task = item
            if batch and task is not None and not task.done():
                await self._sink(batch)
                batch = []
            batch.append(Gathered(step, None if task is None else await task))
            if len(batch) >= BATCH or self._started.empty():
                await self._sink(batch)
                batch = []
        if batch:
            await self._sink(batch)
