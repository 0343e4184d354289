"""The ordered pipeline: bounded, in order, and clean after every kind of interruption."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

import pytest

from auditor.aio.budget import InFlightBudget
from auditor.aio.ordered import ItemWork, Start, in_order, one_ahead
from auditor.aio.stop import Stop

Hook = Callable[[int], Awaitable[None]]
"""Waits, or fails, for a page's or an item's number."""


class BrokenError(Exception):
    """The failure that a test injects."""


@dataclass(frozen=True)
class Item:
    key: str
    number: int


def items(count: int, each: int = 1) -> list[Item]:
    """`each` items under every key."""
    return [Item(f"k{number // each:05d}", number) for number in range(count)]


async def settle(rounds: int = 500) -> None:
    for _ in range(rounds):
        await asyncio.sleep(0)


async def lingers(number: int) -> None:
    """Results come in an order of their own."""
    for _ in range(random.Random(number).randrange(8)):
        await asyncio.sleep(0)


class Run:
    """One pipeline over pages of items. started: items whose work began; done: results that the sink has.

    page, work, sink, start: for a test to replace.
    """

    def __init__(
        self, found: Sequence[Item], *, page_size: int = 10, permits: int = 4, window: int = 50, batch: int = 1
    ) -> None:
        self._items = found
        self._page_size = page_size
        self.permits = asyncio.Semaphore(permits)
        self._window = window
        self._batch = batch
        self.stop = Stop()
        self.whole_keys = False
        self.started: list[int] = []
        self.tasks = 0
        self.batches: list[list[int]] = []
        self.listed = 0
        self.page: Hook = lingers
        self.work: Hook = lingers
        self.sink: Callable[[list[int]], Awaitable[None]] = self.take
        self.start: Start[Item, int] = self.begin
        self.closed = False

    @property
    def done(self) -> list[int]:
        return [number for batch in self.batches for number in batch]

    async def pages(self) -> AsyncGenerator[list[Item], None]:
        try:
            for start in range(0, len(self._items), self._page_size):
                await self.page(self.listed)
                self.listed += 1
                yield list(self._items[start : start + self._page_size])
        finally:
            self.closed = True

    async def take(self, batch: list[int]) -> None:
        self.batches.append(batch)
        await asyncio.sleep(0)

    async def begin(self, group: asyncio.TaskGroup, item: Item, same_key: bool) -> asyncio.Task[int] | int | None:
        await self.permits.acquire()
        if self.stop and not same_key:
            self.permits.release()
            return None
        return group.create_task(self._work(item.number))

    async def _work(self, number: int) -> int:
        self.tasks = max(self.tasks, len(asyncio.all_tasks()))
        self.started.append(number)
        try:
            await self.work(number)
            return number
        finally:
            self.permits.release()

    async def __call__(self) -> bool:
        return await in_order(
            self.pages(),
            self.start,
            self.sink,
            self.stop,
            window=self._window,
            batch=self._batch,
            whole_keys=self.whole_keys,
        )


async def forever(*_: object) -> NoReturn:
    await asyncio.Event().wait()
    raise AssertionError("it ended")


async def breaks(*_: object) -> NoReturn:
    raise BrokenError


class TestBounds:
    async def test_one_slow_item_holds_back_a_window_and_no_more(self) -> None:
        release = asyncio.Event()
        run = Run(items(500), window=30)

        async def hold_the_first(number: int) -> None:
            if number == 0:
                await release.wait()

        run.work = hold_the_first
        task = asyncio.create_task(run())
        await settle(3000)
        assert run.done == []
        assert 30 <= len(run.started) <= 32
        release.set()
        assert await task is True
        assert run.done == list(range(500))

    async def test_slow_sink_holds_back_the_rest(self) -> None:
        batch = 20
        release = asyncio.Event()
        run = Run(items(500), window=30, batch=batch)

        async def slow(results: list[int]) -> None:
            await release.wait()
            run.batches.append(results)

        run.sink = slow
        task = asyncio.create_task(run())
        await settle(3000)
        assert len(run.started) <= 30 + batch + 2
        release.set()
        assert await task is True
        assert run.done == list(range(500))

    async def test_batch_is_full_or_holds_what_is_ready(self) -> None:
        held = asyncio.Event()
        run = Run(items(60), permits=60, page_size=60, window=100, batch=20)

        async def hold_one(number: int) -> None:
            if number == 25:
                await held.wait()

        run.work = hold_one
        task = asyncio.create_task(run())
        await settle()
        assert 20 in map(len, run.batches)
        held.set()
        assert await task is True
        assert run.done == list(range(60))
        assert {*map(len, run.batches)} <= {*range(1, 21)}

    async def test_work_waits_for_its_part_of_a_budget(self) -> None:
        run = Run(items(20))
        budget = InFlightBudget(10, 100)
        seen: list[tuple[int, int]] = []

        async def weigh(number: int) -> int:
            now = budget.statistics()
            seen.append((now.objects, now.bytes))
            await settle(3)
            return number

        async def budgeted(group: asyncio.TaskGroup, item: Item, same_key: bool) -> ItemWork[int]:
            return ItemWork(budget, 30, lambda: weigh(item.number))

        run.start = budgeted
        assert await run() is True
        assert run.done == list(range(20))
        assert max(seen) == (3, 90)
        assert budget.statistics().bytes == 0


class TestStop:
    async def test_while_waiting_for_a_page(self) -> None:
        run = Run(items(30))
        run.page = at_page(1, forever)
        before = asyncio.all_tasks()
        task = asyncio.create_task(run())
        await settle()
        run.stop.set("enough")
        assert await task is False
        assert run.done == list(range(10))
        assert run.closed
        assert asyncio.all_tasks() == before

    @pytest.mark.parametrize("page_size", [2, 3, 4, 5, 7])
    async def test_never_parts_a_key(self, page_size: int) -> None:
        run = Run(items(120, each=3), page_size=page_size)
        run.whole_keys = True
        stop_after(run, 20)
        assert await run() is False
        assert 20 <= len(run.done) < 120
        assert len(run.done) % 3 == 0

    async def test_unless_asked_otherwise_results_come_singly_and_no_page_follows_a_stop(self) -> None:
        run = Run(items(30, each=3))
        run.page = at_page(99, forever)

        async def known(group: asyncio.TaskGroup, item: Item, same_key: bool) -> int:
            if item.number == 9:  # the first version of a key that goes on in the next page
                run.stop.set("enough")
            return item.number

        assert await in_order(run.pages(), known, run.take, run.stop, window=50) is False
        assert run.batches == [[number] for number in range(10)]
        assert run.listed == 1


class TestErrors:
    @pytest.mark.parametrize("where", ["page", "start", "sink"])
    async def test_is_raised_as_itself(self, where: str) -> None:
        run = Run(items(100))
        setattr(run, where, breaks)
        before = asyncio.all_tasks()
        with pytest.raises(BrokenError):
            await run()
        assert run.closed
        assert asyncio.all_tasks() == before

    async def test_of_an_items_work_ends_the_rest(self) -> None:
        run = Run(items(200))

        async def one_breaks(number: int) -> None:
            await lingers(number)
            if number == 50:
                raise BrokenError

        run.work = one_breaks
        before = asyncio.all_tasks()
        with pytest.raises(BrokenError):
            await run()
        assert run.done == list(range(len(run.done)))
        assert len(run.done) <= 50
        assert len(run.started) < 100
        assert run.closed
        assert asyncio.all_tasks() == before


class TestCancelled:
    @pytest.mark.parametrize("where", ["page", "start", "work", "sink"])
    async def test_while_it_waits(self, where: str) -> None:
        run = Run(items(100))
        setattr(run, where, forever)
        before = asyncio.all_tasks()
        task = asyncio.create_task(run())
        await settle()
        await cancelled(task)
        assert run.closed
        assert asyncio.all_tasks() == before

    @pytest.mark.parametrize("rounds", range(0, 60, 7))
    async def test_at_any_moment(self, rounds: int) -> None:
        run = Run(items(100), page_size=7, batch=5)
        before = asyncio.all_tasks()
        task = asyncio.create_task(run())
        await settle(rounds + 3)
        await cancelled(task)
        assert run.closed
        assert asyncio.all_tasks() == before
        assert run.done == list(range(len(run.done)))


class TestOneAhead:
    async def test_one_page_waits_and_one_is_in_the_readers_hand(self) -> None:
        run = Run(items(100))
        async with one_ahead(run.pages()) as pages:
            assert await anext(pages) == items(10)
            await settle()
            assert run.listed == 3
            assert [page async for page in pages] == [items(100)[start : start + 10] for start in range(10, 100, 10)]
        assert run.closed


def stop_after(run: Run, results: int) -> None:
    """Set the run's stop once the sink has so many results."""

    async def stopping(batch: list[int]) -> None:
        await run.take(batch)
        if len(run.done) >= results:
            run.stop.set("enough")

    run.sink = stopping


def at_page(wanted: int, hook: Hook) -> Hook:
    async def page(number: int) -> None:
        if number == wanted:
            await hook(number)

    return page


async def cancelled(task: asyncio.Task[object]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()
