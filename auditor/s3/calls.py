"""Make the S3 calls of a run: limit their rate and the number of objects in flight, retry failed calls, and count them.

The number in flight falls if S3 throttles, and rises again later.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal, TypeVar

from msgspec import Struct

from auditor.aio.backoff import backoff
from auditor.aws.failures import CREDENTIALS_RENEWED, doom, is_throttle, is_transient
from auditor.errors import CallFailed
from auditor.s3.prices import MAX_COST, CostBudget
from auditor.s3.rate import Clock, RateLimit, Sleep

LATENCY_GROWTH: Final = 0.01
"""The remembered best latency grows by this share each second, so that an old best does not count for ever."""

AUTO_START: Final = 8
AUTO_CEILING: Final = 128
FEWEST_AT_FIRST: Final = 4
MOST_AT_FIRST: Final = 48
MB_FOR_EACH: Final = 36
"""Megabytes. A Lambda function starts with one call in flight for each MB_FOR_EACH of its memory.

Each of these calls needs a TLS handshake, which takes the CPU of ten calls, and Lambda gives CPU in proportion to
memory (docs/performance.md).
"""

log = logging.getLogger(__name__)

T = TypeVar("T")
Kind = Literal["list", "acl", "head", "bucket", "get"]

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 20.0
FIRST_USELESS_PAUSE: Final = 0.01
LONGEST_USELESS_PAUSE: Final = 0.1
"""Seconds. The longest pause before a retry if S3 refuses the same share of the calls at any rate. A longer pause would
not help, would hold a permit, and would be most of a short run's time."""

SETTING_SECONDS: Final = 5.0
SETTING_PAUSE: Final = 0.5
"""Seconds. The longest pause before a retry of a call on a setting of the bucket. A server may fail at each such call,
because it does not have the setting. Therefore these retries also end sooner."""
MAX_CALLS: Final = "MaxCalls"
"""The error code of a call that --max-calls does not allow."""
LIMITS: Final = {MAX_CALLS: "--max-calls", MAX_COST: "--max-cost"}
"""The error codes of calls that a limit of the run does not allow, with the limit's flag."""
UNREADABLE: Final = "500"
"""The error code of an answer that is no XML, because it is cut for example. The SDKs report it as status 500."""
BROKEN_ATTEMPTS: Final = 2
"""Attempts of a call whose answers break HTTP, or are no XML: another one is hardly better, and no outage ends."""
_WITHOUT_BODY: Final = frozenset({"head", "get"})
"""Kinds of calls whose status 500 is S3's own: its code is the status, because it has no body or no XML."""
TOLD_AFTER: Final = 3
"""Number of refusals of a call after which the user is told the server's answer, if no call has succeeded yet."""


def first_in_flight(environ: Mapping[str, str] = os.environ) -> int:
    """Return the number of calls in flight with which a run begins.

    In a Lambda function the number depends on the memory, and so on the CPU, because each of these calls needs a TLS
    handshake.
    """
    memory = environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
    if not memory.isdecimal():
        return 2 * AUTO_START
    return max(FEWEST_AT_FIRST, min(MOST_AT_FIRST, int(memory) // MB_FOR_EACH))


class ConcurrencyStatistics(Struct, frozen=True):
    """The state of a ConcurrencyLimit at one moment.

    limit: number of objects that may be in flight. in_use: number of objects that are in flight. peak: the largest
    number that ever was. waiting: number of callers that wait in acquire().
    """

    limit: int
    in_use: int
    peak: int
    waiting: int


class ConcurrencyLimit:
    """Gives permits, each for one object in flight. The number of permits falls when S3 throttles, and rises later.

    ceiling: the largest number of permits. auto: True to begin with `first` permits, False to begin with the ceiling.
    With auto, the number doubles each round until S3 throttles or the latency has doubled; from then on it rises by one
    each round. A round ends when S3 has answered as many calls as there are permits.
    """

    def __init__(
        self, ceiling: int, *, auto: bool = False, first: int = AUTO_START, clock: Clock = time.monotonic
    ) -> None:
        self._ceiling = max(1, ceiling)
        self._auto = auto
        self._first = min(first, self._ceiling)
        self._limit = self._first if auto else self._ceiling
        self._climbing = auto
        self._clock = clock
        self._in_use = 0
        self._peak = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._answers = 0
        self._latency_sum = 0.0
        self._best_latency: float | None = None
        self._ignores_throttling_until = 0.0
        self._round_ended_at = clock()

    @property
    def in_use(self) -> int:
        return self._in_use

    def assume_open(self, open_connections: int) -> None:
        """Raise the limit to the number of connections that an earlier run left open, which need no handshake.

        A few permits are added for new connections, except in the smallest Lambda functions. The limit stays as it is
        if it is fixed (not `auto`), is higher already, or has fallen in this run.
        """
        if self._climbing and open_connections >= self._first:
            more = max(0, self._first - FEWEST_AT_FIRST)
            self._limit = max(self._limit, min(self._ceiling, open_connections + more))

    def statistics(self) -> ConcurrencyStatistics:
        return ConcurrencyStatistics(self._limit, self._in_use, self._peak, len(self._waiters))

    async def acquire(self) -> None:
        """Wait for a permit. Callers get permits in the order in which they asked for one."""
        if self._in_use >= self._limit or self._waiters:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except BaseException:
                if waiter.done() and not waiter.cancelled():
                    self.release()  # the permit was given just before the cancellation
                elif waiter in self._waiters:
                    self._waiters.remove(waiter)
                raise
        else:
            self._in_use += 1
        self._peak = max(self._peak, self._in_use)

    def release(self) -> None:
        self._in_use -= 1
        if self._waiters:
            self._wake()

    def _wake(self) -> None:
        while self._waiters and self._in_use < self._limit:
            waiter = self._waiters.popleft()
            if not waiter.done():
                self._in_use += 1
                waiter.set_result(None)

    def answered(self, seconds: float) -> None:
        """Count a call that S3 did not throttle. seconds: how long the call took."""
        self._answers += 1
        self._latency_sum += seconds
        if self._answers >= self._limit:
            self._end_round(self._latency_sum / self._answers)

    def throttled(self) -> None:
        """Lower the limit by a quarter because S3 throttled a call. Do this at most once in a quarter of a second.

        Calls that are in flight together are mostly throttled together, so they count as one.
        """
        now = self._clock()
        if now < self._ignores_throttling_until:
            return
        self._ignores_throttling_until = now + 0.25
        self._climbing = False
        self._limit = max(1, self._limit * 3 // 4)
        self._answers, self._latency_sum = 0, 0.0

    def _end_round(self, latency: float) -> None:
        self._answers, self._latency_sum = 0, 0.0
        now = self._clock()
        # S3's own latency changes over minutes, so the old best loses its weight slowly.
        growth = 1.0 + LATENCY_GROWTH * (now - self._round_ended_at)
        self._best_latency = latency if self._best_latency is None else min(self._best_latency * growth, latency)
        self._round_ended_at = now
        if self._auto and latency > 2 * self._best_latency:
            self._climbing = False
            self._limit = max(self._first, self._limit - max(1, self._limit // 16))
        elif self._climbing:
            self._limit = min(self._ceiling, self._limit * 2)
        else:
            self._limit = min(self._ceiling, self._limit + 1)
        self._wake()


class RetryPolicy(Struct, frozen=True):
    """How often, and for how long, a failed call is tried again.

    attempts: largest number of attempts, the first included. seconds: how long after the start of the first attempt
    another one may begin. first_seconds: the same limit while the server's address is probably wrong: the server has
    not answered yet in this run, and connections are refused or lost, or no answer comes in time.
    """

    attempts: int = 15
    seconds: float = 60.0
    first_seconds: float = 5.0


class Caller:
    """Makes the S3 calls of one run, with retries, within the limits of rate, concurrency and number.

    It retries throttled calls, lost connections and server errors, after doubling, random pauses. It raises RunError if
    every further call would fail the same way, for example with expired credentials, and CallFailed for any other
    failure.

    ceiling: a limit of calls per second that several runs share, and that S3's refusals do not change.
    """

    def __init__(
        self,
        bucket: str,
        *,
        rate: RateLimit,
        permits: ConcurrencyLimit,
        retry: RetryPolicy | None = None,
        max_calls: int | None = None,
        ceiling: RateLimit | None = None,
        cost: CostBudget | None = None,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        dice: random.Random | None = None,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.permits = permits
        self.calls_per_object = 0
        """Number of calls that each object in flight may still need. A listing call leaves these in the budget."""
        self.renewals = 0
        """Number of calls that S3 refused because of credentials that have been replaced since."""
        self.bucket = bucket
        self._rate = rate
        self._retry = retry or RetryPolicy()
        self._max_calls = max_calls
        self._ceiling = ceiling
        self.cost = cost
        """The limit of the calls' price; None if there is none."""
        self._has_budget = max_calls is not None or cost is not None
        self._sent = 0
        self._reached: set[str] = set()
        self._untold: set[Kind] = {"list", "acl", "head", "bucket", "get"}
        self.clock = clock
        self._sleep = sleep
        self._dice = dice

    @property
    def budget_left(self) -> int | None:
        """The number of calls that may still be sent (--max-calls); None if there is no limit."""
        return None if self._max_calls is None else max(0, self._max_calls - self._sent)

    def short_of(self, calls: int) -> bool:
        """True if fewer than `calls` calls may still be sent."""
        return self.budget_left is not None and self.budget_left < calls

    async def call(
        self,
        kind: Kind,
        action: str,
        attempt: Callable[[], Awaitable[T]],
        *,
        beyond_budget: bool = False,
        server: str = "s3",
        storage_class: str = "STANDARD",
    ) -> T:
        """Make a call, with retries, and return its answer.

        Raises CallFailed, or RunError if every further call would fail too.

        kind: the group in which the call is counted. action: the API operation. attempt: sends the call once.
        beyond_budget: True to send the call even if --max-calls is used up. server: the server that the call goes to,
        "s3" or "sts"; RetryPolicy.first_seconds limits the retries until this server has answered for the first time.
        """
        started = self.clock()
        tries = 0
        while True:
            tries += 1
            if self._has_budget:
                self._spend(kind, action, beyond_budget, storage_class)
            if self._rate.limited:
                await self._rate.take()
            if self._ceiling is not None:
                await self._ceiling.take()
            self.counts[kind] += 1
            sent = self.clock()
            try:
                answer = await attempt()
            except CallFailed as failure:
                self._note(failure, self.clock(), sent)
                limit = self._limit(kind, failure, server)
                pause = self._pause(kind, failure, tries, started, limit)
                if pause is None:
                    if (error := doom(failure, self.bucket)) is not None:
                        raise error from failure
                    raise
                if tries >= TOLD_AFTER and failure.status and kind in self._untold:
                    self._untold.discard(kind)
                    _tell(failure, started + limit - self.clock())
            else:
                now = self.clock()
                self._reached.add(server)
                self._untold.clear()
                self.permits.answered(now - sent)
                self._rate.answered(now, sent)
                return answer
            await self._sleep(pause)
            self.counts["retried"] += 1

    def begin_object(self, storage_class: str) -> str | None:
        """Reserve the calls of an object that has a permit, in the budgets. Return the flag of a limit that leaves too
        little for all objects in flight; None if all may continue. end_object() must follow in any case.
        """
        if not self._has_budget:
            return None
        if self.cost is not None:
            self.cost.reserve(self.calls_per_object, storage_class)
            if self.cost.short:
                return "--max-cost"
        return "--max-calls" if self.short_of(self.calls_per_object * self.permits.in_use) else None

    def end_object(self, storage_class: str) -> None:
        """Free what begin_object() reserved."""
        if self.cost is not None:
            self.cost.reserve(-self.calls_per_object, storage_class)

    def _spend(self, kind: Kind, action: str, beyond_budget: bool, storage_class: str) -> None:
        """Count one call against --max-calls and --max-cost. Raises CallFailed (MaxCalls, MaxCost) if they are used up.

        A listing call has to leave the calls that the objects in flight may still need. beyond_budget: True to count
        the call without this check.
        """
        if not beyond_budget:
            reserved = self.calls_per_object * self.permits.in_use if kind == "list" else 0
            if self.short_of(1 + reserved):
                raise CallFailed(action, MAX_CALLS, message="the limit of --max-calls is reached")
            if self.cost is not None and not self.cost.allows(kind, storage_class):
                raise CallFailed(action, MAX_COST, message="the limit of --max-cost is reached")
        self._sent += 1
        if self.cost is not None:
            self.cost.spend(kind, storage_class)

    def _note(self, failure: CallFailed, now: float, sent: float) -> None:
        """Count a failed attempt, and report it to the limits of rate and concurrency. sent: when the attempt was
        sent.
        """
        if is_throttle(failure):
            self.counts["throttled"] += 1
            if self._rate.refused(now, sent):
                self.permits.throttled()
        elif failure.code in ("Timeout", "ConnectionError"):
            self.permits.throttled()
        elif failure.code == CREDENTIALS_RENEWED:
            self.renewals += 1
        elif not is_transient(failure):
            self.permits.answered(now - sent)
            self._rate.answered(now, sent)

    def _limit(self, kind: Kind, failure: CallFailed, server: str) -> float:
        """Return for how many seconds after a call's first attempt further attempts may begin.

        The time is shorter in two cases. One is a server that has never answered, if the connection is lost or no
        answer comes; a failure with an HTTP status shows that the server answers. The other is a failure of the server
        at a setting of the bucket.
        """
        if failure.status:
            self._reached.add(server)
        if _is_about_a_setting(kind, failure):
            return min(self._retry.seconds, SETTING_SECONDS)
        if server in self._reached or failure.code not in ("ConnectionError", "Timeout"):
            return self._retry.seconds
        return min(self._retry.seconds, self._retry.first_seconds)

    def _pause(self, kind: Kind, failure: CallFailed, tries: int, started: float, limit: float) -> float | None:
        """Return the seconds to wait before the next attempt; None if the call is not to be tried again.

        tries: number of attempts so far. started: when the first attempt began. limit: how many seconds after `started`
        another attempt may begin.
        """
        # botocore reports an unreadable body as code 500. A server without this API sends one each time.
        unreadable = failure.code == UNREADABLE and kind not in _WITHOUT_BODY
        most = BROKEN_ATTEMPTS if unreadable or failure.code == "BrokenReply" else self._retry.attempts
        if not is_transient(failure) or tries >= min(most, self._retry.attempts):
            return None
        helps = self._rate.waiting_helps or not is_throttle(failure)
        first, longest = (FIRST_PAUSE, LONGEST_PAUSE) if helps else (FIRST_USELESS_PAUSE, LONGEST_USELESS_PAUSE)
        if _is_about_a_setting(kind, failure):
            longest = SETTING_PAUSE
        pause = backoff(tries - 1, first, longest, least=0.0, dice=self._dice)
        too_late = self.clock() + pause - started > limit
        return None if too_late else pause


def _tell(failure: CallFailed, seconds: float) -> None:
    """Log the server's answer to a call that it has refused several times. seconds: for which it is tried again."""
    from http import HTTPStatus  # half a millisecond; few servers refuse a call several times

    answer = failure.code
    if failure.code == str(failure.status) and failure.status in set(HTTPStatus):
        answer = f"{failure.code} {HTTPStatus(failure.status).phrase}"
    until = time.strftime("%H:%M:%S", time.localtime(time.time() + seconds))
    log.warning(
        "the server answers %s with %s: it is tried again until %s, for %.0f seconds at most",
        failure.action,
        answer,
        until,
        seconds,
    )


def _is_about_a_setting(kind: Kind, failure: CallFailed) -> bool:
    """True if the server itself failed at a call on the bucket, perhaps because it does not have this call."""
    return kind == "bucket" and failure.status in (500, 502, 504) and not is_throttle(failure)
