"""The rate and the permits, in fake time."""

from __future__ import annotations

import asyncio
import random
from bisect import bisect_left

import pytest

from auditor.s3.calls import ConcurrencyLimit, first_in_flight
from auditor.s3.rate import ARRIVAL_SECONDS, RateLimit
from tests.support.fakes.caller import FakeTime


class TestRate:
    @pytest.mark.parametrize("per_second", [0.5, 1, 3.7, 100, 1500])
    async def test_no_second_has_more_calls_than_the_ceiling(self, per_second: float) -> None:
        """Also where the caller is late time and again, and makes up for it, and where calls arrive at uneven times."""
        time, dice, sent = FakeTime(), random.Random(1), list[float]()
        rate = RateLimit(per_second, clock=time.clock, sleep=time.sleep)
        for _ in range(int(per_second * 12) + 3):
            await rate.take()
            sent.append(time.now + dice.uniform(0, ARRIVAL_SECONDS))
            if dice.random() < 0.5 / per_second:
                time.now += dice.choice([0.01, 0.04, 0.3])
        sent.sort()
        busiest = max(bisect_left(sent, begin + 1.0) - number for number, begin in enumerate(sent))
        assert busiest <= max(1, per_second)
        assert len(sent) / (sent[-1] - sent[0]) > 0.4 * per_second

    async def test_a_ceiling_that_changes_holds_for_what_was_sent_before(self) -> None:
        time = FakeTime()
        rate = RateLimit(100, clock=time.clock, sleep=time.sleep)
        for _ in range(50):
            await rate.take()
        rate.change(20)
        before = time.now
        await rate.take()
        assert time.now - before > 0.5  # fifty were sent in half a second
        rate.change(200)
        assert rate.row.recent(1.5) == 20

    async def test_others_begin_once_few_calls_were_sent_in_the_last_second(self) -> None:
        time = FakeTime()
        rate = RateLimit(100, clock=time.clock, sleep=time.sleep)
        for _ in range(60):
            await rate.take()
        began = time.now
        await rate.quiet()
        assert 0.9 < time.now - began <= 1.05
        await rate.quiet()
        await RateLimit(None, clock=time.clock, sleep=time.sleep).quiet()
        assert time.now - began <= 1.05


def limit(permits: ConcurrencyLimit) -> int:
    return permits.statistics().limit


def a_round(permits: ConcurrencyLimit, seconds: float = 0.01) -> None:
    """One round: as many answers as the limit."""
    for _ in range(limit(permits)):
        permits.answered(seconds)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


class TestPermits:
    async def test_no_more_than_the_ceiling_and_first_come_first_served(self) -> None:
        permits, order = ConcurrencyLimit(2), list[int]()

        async def hold(number: int) -> None:
            await permits.acquire()
            order.append(number)
            await settle()
            permits.release()

        await asyncio.gather(*(hold(number) for number in range(10)))
        assert order == list(range(10))
        assert permits.statistics().peak == 2
        assert permits.statistics().in_use == 0

    async def test_cancelled_in_the_moment_of_being_served_gives_it_back(self) -> None:
        permits = ConcurrencyLimit(1)
        await permits.acquire()
        first, second = (asyncio.create_task(permits.acquire()) for _ in range(2))
        await settle()
        permits.release()  # the first task has the permit now, and has not run yet
        first.cancel()
        await second
        with pytest.raises(asyncio.CancelledError):
            await first
        assert permits.statistics().in_use == 1

    def test_throttling_takes_a_quarter_and_success_brings_it_back_one_a_round(self) -> None:
        time = FakeTime()
        permits = ConcurrencyLimit(16, clock=time.clock)
        permits.throttled()
        assert limit(permits) == 12
        rounds = 0
        while limit(permits) < 16:
            a_round(permits)
            rounds += 1
        assert rounds == 4
        a_round(permits)
        assert limit(permits) == 16

    def test_calls_refused_together_count_once(self) -> None:
        time = FakeTime()
        permits = ConcurrencyLimit(100, clock=time.clock)
        for _ in range(50):
            permits.throttled()
        assert limit(permits) == 75
        time.now += 0.3
        permits.throttled()
        assert limit(permits) == 56

    async def test_lowered_limit_holds_for_those_who_wait(self) -> None:
        time = FakeTime()
        permits = ConcurrencyLimit(4, clock=time.clock)
        for _ in range(4):
            await permits.acquire()
        waiting = asyncio.create_task(permits.acquire())
        permits.throttled()
        await settle()
        permits.release()  # three in use, three allowed
        await settle()
        assert not waiting.done()
        permits.release()
        await waiting
        assert permits.statistics().in_use == 3

    def test_auto_doubles_until_the_ceiling(self) -> None:
        permits, seen = ConcurrencyLimit(100, auto=True), list[int]()
        for _ in range(6):
            seen.append(limit(permits))
            a_round(permits)
        assert seen == [8, 16, 32, 64, 100, 100]

    def test_auto_goes_back_when_latency_has_doubled(self) -> None:
        permits = ConcurrencyLimit(100, auto=True)
        a_round(permits, 0.01)
        a_round(permits, 0.011)
        assert limit(permits) == 32
        a_round(permits, 0.03)
        assert limit(permits) == 30
        a_round(permits, 0.012)
        assert limit(permits) == 31


class TestFirstInFlight:
    def test_few_where_there_is_little_cpu(self) -> None:
        for memory, expected in (("128", 4), ("512", 14), ("1769", 48), ("10240", 48), ("", 16)):
            assert first_in_flight({"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": memory}) == expected
        assert limit(ConcurrencyLimit(3, auto=True, first=32)) == 3

    def test_it_is_where_permits_begin_and_never_fall_below_for_latency(self) -> None:
        permits = ConcurrencyLimit(100, auto=True, first=4)
        assert limit(permits) == 4
        a_round(permits, 0.01)
        for _ in range(50):
            a_round(permits, 5.0)
        assert limit(permits) == 4


class TestOpenConnections:
    def test_it_begins_with_those_and_the_handshakes_that_are_worth_it(self) -> None:
        # Few connections change nothing; in the smallest function no handshake is worth it.
        for first, connections, begins in ((16, 0, 16), (16, 15, 16), (48, 48, 92), (4, 40, 40), (48, 120, 128)):
            permits = ConcurrencyLimit(128, auto=True, first=first)
            permits.assume_open(connections)
            assert limit(permits) == begins
            a_round(permits)
            assert limit(permits) == min(128, 2 * begins)
