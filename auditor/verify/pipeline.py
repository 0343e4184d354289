"""Every pair of listing and ledger gets its outcome: many are read at once, and handed on in the order of keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from auditor.aio.budget import InFlightBudget
from auditor.aio.groups import task_group
from auditor.aio.stop import Stop
from auditor.errors import CallFailed
from auditor.hashing.digest.result import Paused
from auditor.s3.storage_class import charged
from auditor.verify.compare import Comparison, ReadRequest
from auditor.verify.due import Due
from auditor.verify.history import HistoryWriter
from auditor.verify.merge import Pair
from auditor.verify.outcome import VerifyOutcome
from auditor.verify.read import ReadResult

WINDOW: Final = 10_000
"""Outcomes that wait for that of an earlier key; one large object holds back no more than these."""

Ask = Callable[[ReadRequest], Awaitable[ReadResult | Paused]]
Gone = Callable[[Pair], Awaitable[bool]]
"""Whether a notification said that this is deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPolicy:
    """What is read: what is due, as of `now`, and does not cost, unless that is accepted."""

    judge: Comparison
    due: Due
    now: datetime
    accept_cost: bool = False

    def look(self, pair: Pair) -> ReadResult | ReadRequest:
        """Of a listed object: its outcome, or what must be read to know it."""
        if pair.ref is None:
            raise ValueError("it is not listed")
        found = self.judge.listed(pair.ref, pair.subject)
        if not isinstance(found, ReadRequest):
            return ReadResult(found)
        ref = found.ref
        if not self.due.due(ref.key, ref.version_id, found.checked, self.now):
            return ReadResult(found.verified(found.unread))
        if not self.accept_cost and charged(ref.storage_class, ref.size) is not None:
            return ReadResult(found.verified(VerifyOutcome.LEFT_FOR_COST, storage_class=ref.storage_class))
        return found


@dataclass(frozen=True, slots=True)
class Done:
    """One step in key order. answer None: only delete markers were passed."""

    key: str
    answer: ReadResult | None
    delete_markers: int = 0


Doing = Done | asyncio.Task[Done | None]


class Walk:
    """One pass. sink: gets what is done, in order; after an object that was paused, nothing more.

    weight: bytes that reading an object of a size takes of the permits. limit: true when no more may be read.
    """

    def __init__(
        self,
        rules: ReadPolicy,
        ask: Ask,
        gone: Gone,
        notes: HistoryWriter,
        permits: InFlightBudget,
        stop: Stop,
        sink: Callable[[Done], Awaitable[None]],
        *,
        weight: Callable[[int], int],
        limit: Callable[[], bool] = lambda: False,
        whole_keys: bool = False,
        window: int = WINDOW,
    ) -> None:
        self._rules = rules
        self._ask = ask
        self._gone = gone
        self._notes = notes
        self._permits = permits
        self._stop = stop
        self._sink = sink
        self._weight = weight
        self._limit = limit
        self._whole_keys = whole_keys
        self._started: asyncio.Queue[Doing | None] = asyncio.Queue(window)
        self._paused = False

    async def all(self, pairs: AsyncGenerator[list[Pair], None]) -> bool:
        """True when the listing and the ledger were gone through to their ends. What was found is noted, come what may.

        It stops between two keys only. The first error that dooms the run cancels the rest and is raised as it is.
        """
        try:
            async with aclosing(pairs), task_group() as group:
                group.create_task(self._drain())
                ended = await self._start_all(group, pairs)
                await self._started.put(None)
        finally:
            await self._notes.flush()
        return ended and not self._paused

    async def _start_all(self, group: asyncio.TaskGroup, pairs: AsyncGenerator[list[Pair], None]) -> bool:
        last: str | None = None
        while True:
            try:
                batch = await self._next(pairs)
            except CallFailed as failure:
                self._stop.set(f"the limit of --max-calls was reached ({failure.code})")
                return False
            if batch is None:
                return not self._stop
            for pair in batch:
                if self._must_stop() and pair.key != last:
                    return False
                await self._started.put(await self._start(group, pair))
                last = pair.key

    async def _next(self, pairs: AsyncGenerator[list[Pair], None]) -> list[Pair] | None:
        """None: there are no more, or the run is to stop."""
        if self._whole_keys:
            return await anext(pairs, None)
        return None if self._stop else await self._stop.race(_following(pairs))

    def _must_stop(self) -> bool:
        if self._limit():
            self._stop.set("the limit of --max-calls was reached")
        return bool(self._stop)

    async def _start(self, group: asyncio.TaskGroup, pair: Pair) -> Doing:
        if pair.absent:
            if pair.version is None:
                return await self._absent(pair)
            await self._permits.take(0)
            return self._task(group, self._absent(pair), 0)
        if pair.ref is None:
            return Done(pair.key, None, pair.delete_markers)
        found = self._rules.look(pair)
        if isinstance(found, ReadResult):
            await self._notes.add(found.verified)
            return Done(pair.key, found, pair.delete_markers)
        weight = self._weight(pair.ref.size)
        await self._permits.take(weight)
        return self._task(group, self._read(pair, found), weight)

    def _task(
        self, group: asyncio.TaskGroup, work: Coroutine[Any, Any, Done | None], weight: int
    ) -> asyncio.Task[Done | None]:
        task = group.create_task(work)
        # Not in the task itself: one that is cancelled before its first step never runs.
        task.add_done_callback(lambda _: self._permits.give(weight))
        return task

    async def _read(self, pair: Pair, question: ReadRequest) -> Done | None:
        answer = await self._ask(question)
        if isinstance(answer, Paused):
            return None
        await self._notes.add(answer.verified, question.claims)
        return Done(pair.key, answer, pair.delete_markers)

    async def _absent(self, pair: Pair) -> Done:
        verified = self._rules.judge.absent(pair, await self._gone(pair))
        await self._notes.add(verified)
        return Done(pair.key, ReadResult(verified), pair.delete_markers)

    async def _drain(self) -> None:
        while (doing := await self._started.get()) is not None:
            done = await doing if isinstance(doing, asyncio.Task) else doing
            if done is None:
                self._paused = True
            elif not self._paused:
                await self._sink(done)


async def _following(pairs: AsyncGenerator[list[Pair], None]) -> list[Pair] | None:
    return await anext(pairs, None)
