"""A fake clock, a caller with that clock, and listing entries for the engine in memory."""

from __future__ import annotations

import asyncio
import random

from auditor.model.object import ObjectRef
from auditor.s3.calls import Caller, ConcurrencyLimit, RetryPolicy
from auditor.s3.rate import RateLimit
from tests.conformance.memory import OWNER


class FakeTime:
    """A clock that moves in sleep() only."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class LongestPause(random.Random):
    """Dice that always fall on the largest number."""

    def uniform(self, a: float, b: float) -> float:
        return b


def make_caller(
    time: FakeTime | None = None,
    *,
    permits: ConcurrencyLimit | None = None,
    retry: RetryPolicy | None = None,
    max_calls: int | None = None,
    dice: random.Random | None = None,
) -> Caller:
    """A caller of the bucket "audited" in fake time."""
    time = time or FakeTime()
    return Caller(
        "audited",
        rate=RateLimit(None, clock=time.clock, sleep=time.sleep),
        permits=permits or ConcurrencyLimit(4, clock=time.clock),
        retry=retry,
        max_calls=max_calls,
        clock=time.clock,
        sleep=time.sleep,
        dice=dice,
    )


def ref(key: str, version_id: str | None = None, *, latest: bool = True, owner: str | None = OWNER) -> ObjectRef:
    return ObjectRef(key, f"etag of {key}", 1, "2026-01-02T03:04:05Z", version_id, owner=owner, is_latest=latest)
