"""Every request of a run goes through here: the rate, the budget, the retries and the counts are the same for all."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from auditor.aio.backoff import backoff
from auditor.aws.failures import CREDENTIALS_RENEWED, doom, is_throttle, is_transient
from auditor.errors import CallFailed
from auditor.s3.concurrency import ConcurrencyLimit
from auditor.s3.rate import Clock, RateLimit, Sleep

T = TypeVar("T")
Kind = Literal["list", "acl", "head", "bucket", "get"]

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 20.0
UNREADABLE: Final = "500"
UNREADABLE_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """attempts: the first included. seconds: no attempt starts later than this after the first."""

    attempts: int = 10
    seconds: float = 60.0


class Caller:
    """Makes calls on one bucket. Throttles, resets and server errors are tried again with jittered, doubling pauses
    ("full jitter", AWS Architecture Blog); what dooms the run is raised as RunError; all else leaves as CallFailed.
    """

    def __init__(
        self,
        bucket: str,
        *,
        rate: RateLimit,
        permits: ConcurrencyLimit,
        retry: RetryPolicy | None = None,
        max_calls: int | None = None,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        dice: random.Random | None = None,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.permits = permits
        self.calls_per_object = 0
        """What each object in flight may still need; a listing leaves it that much of the budget."""
        self.renewals = 0
        """How many calls were refused for credentials that have been replaced since."""
        self._bucket = bucket
        self._rate = rate
        self._retry = retry or RetryPolicy()
        self._max_calls = max_calls
        self._sent = 0
        self.clock = clock
        self._sleep = sleep
        self._dice = dice

    @property
    def budget_left(self) -> int | None:
        """How many calls may still be sent; None: no limit."""
        return None if self._max_calls is None else max(0, self._max_calls - self._sent)

    def short_of(self, calls: int) -> bool:
        """The budget has fewer calls left than these."""
        return self.budget_left is not None and self.budget_left < calls

    async def call(
        self, kind: Kind, action: str, attempt: Callable[[], Awaitable[T]], *, beyond_budget: bool = False
    ) -> T:
        """Send one request, again where it is worth it. Raises CallFailed, or RunError where every call would fail.

        beyond_budget: send it even when the budget is used up (counted all the same).
        """
        started = self.clock()
        tries = 0
        while True:
            tries += 1
            self._spend(kind, action, beyond_budget)
            if self._rate.limited:
                await self._rate.take()
            self.counts[kind] += 1
            sent = self.clock()
            try:
                answer = await attempt()
            except CallFailed as failure:
                self._note(failure, self.clock(), sent)
                pause = self._pause(kind, failure, tries, started)
                if pause is None:
                    self._raise_doom(failure)
                    raise
            else:
                now = self.clock()
                self.permits.answered(now - sent)
                self._rate.answered(now)
                return answer
            await self._sleep(pause)
            self.counts["retried"] += 1

    def _spend(self, kind: Kind, action: str, beyond_budget: bool) -> None:
        """One call of the budget; raises CallFailed when it is used up."""
        if self._max_calls is not None and not beyond_budget:
            aside = self.calls_per_object * self.permits.in_use if kind == "list" else 0
            if self.short_of(1 + aside):
                raise CallFailed(action, "MaxCalls", message="the limit of --max-calls is reached")
        self._sent += 1

    def _note(self, failure: CallFailed, now: float, sent: float) -> None:
        if is_throttle(failure):
            self.counts["throttled"] += 1
            self.permits.throttled()
            self._rate.refused(now)
        elif failure.code in ("Timeout", "ConnectionError"):
            self.permits.throttled()
        elif failure.code == CREDENTIALS_RENEWED:
            self.renewals += 1
        elif not is_transient(failure):
            self.permits.answered(now - sent)
            self._rate.answered(now)

    def _pause(self, kind: Kind, failure: CallFailed, tries: int, started: float) -> float | None:
        """Seconds until the next attempt, or None when there is to be none."""
        # botocore calls a body that it cannot read a bare 500; servers that do not know a question answer so for ever.
        unreadable = kind == "bucket" and failure.code == UNREADABLE
        if not is_transient(failure) or tries >= (UNREADABLE_ATTEMPTS if unreadable else self._retry.attempts):
            return None
        pause = backoff(tries - 1, FIRST_PAUSE, LONGEST_PAUSE, least=0.0, dice=self._dice)
        late = self.clock() + pause - started > self._retry.seconds
        return None if late else pause

    def _raise_doom(self, failure: CallFailed) -> None:
        if (error := doom(failure, self._bucket)) is not None:
            raise error from failure
