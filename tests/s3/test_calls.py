"""Retries, budget, counts and doom, in fake time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import get_args

import pytest

from auditor.aws.connection import Connection
from auditor.errors import BucketError, CallFailed, CredentialsError
from auditor.s3.calls import FIRST_PAUSE, LONGEST_PAUSE, Caller, ConcurrencyLimit, Kind, RetryPolicy
from auditor.s3.rate import RateLimit
from tests.support.fakes.caller import FakeTime, LongestPause, make_caller
from tests.support.loop_blocking import free_loop as free_loop

SLOW_DOWN = CallFailed("GetObjectAcl", "SlowDown", 503)
BROKEN = CallFailed("GetObjectAcl", "InternalError", 500)


def failing(*failures: CallFailed) -> Callable[[], Awaitable[str]]:
    """An attempt that fails with each of these in turn, then succeeds."""
    left = list(failures)

    async def attempt() -> str:
        if left:
            raise left.pop(0)
        return "answer"

    return attempt


def always(failure: CallFailed) -> Callable[[], Awaitable[str]]:
    async def attempt() -> str:
        raise failure

    return attempt


PASSING = [
    SLOW_DOWN,
    *(CallFailed("HeadObject", str(status), status) for status in (500, 502, 503)),
    BROKEN,
    CallFailed("GetObjectAcl", "GatewayTimeout", 504),
    CallFailed("GetObjectAcl", "RequestTimeout", 400),
    CallFailed("GetObjectAcl", "ConnectionError"),
    CallFailed("GetObjectAcl", "Timeout"),
]
LASTING = [
    CallFailed("HeadObject", code, status)
    for code, status in (("AccessDenied", 403), ("403", 403), ("404", 404), ("400", 400), ("412", 412))
]


async def test_passing_failure_is_tried_again_and_a_lasting_one_is_not() -> None:
    for failure in PASSING:
        caller = make_caller()
        assert await caller.call("head", "HeadObject", failing(failure, failure)) == "answer", failure
        assert (caller.counts["head"], caller.counts["retried"]) == (3, 2), failure
    for failure in LASTING:
        caller = make_caller()
        with pytest.raises(CallFailed) as caught:
            await caller.call("head", "HeadObject", always(failure))
        assert caught.value is failure
        assert (caller.counts["head"], caller.counts["retried"]) == (1, 0), failure


async def test_pauses_double_up_to_a_bound_and_are_drawn_below_it() -> None:
    time = FakeTime()
    caller = make_caller(time, retry=RetryPolicy(12, 1e9))
    with pytest.raises(CallFailed) as caught:
        await caller.call("acl", "GetObjectAcl", always(SLOW_DOWN))
    assert caught.value.code == "SlowDown"
    assert (caller.counts["acl"], caller.counts["retried"], caller.counts["throttled"]) == (12, 11, 12)
    bounds = [min(LONGEST_PAUSE, FIRST_PAUSE * 2**number) for number in range(11)]
    assert len(time.slept) == 11
    assert all(0 <= pause <= bound for pause, bound in zip(time.slept, bounds, strict=True))
    assert len(set(time.slept)) == 11


async def test_no_attempt_begins_after_the_time_limit() -> None:
    time = FakeTime()
    caller = make_caller(time, retry=RetryPolicy(1000, 5.0), dice=LongestPause())
    with pytest.raises(CallFailed):
        await caller.call("acl", "GetObjectAcl", always(SLOW_DOWN))
    assert time.slept == [0.1, 0.2, 0.4, 0.8, 1.6]  # 3.2 more would be too late
    assert sum(time.slept) <= 5.0


REFUSED = CallFailed("HeadBucket", "ConnectionError")


async def test_address_where_nothing_ever_comes_is_given_up_after_one_attempt() -> None:
    settings = Connection(bucket="b")
    for seconds, failure in (
        (settings.connect_timeout, REFUSED),
        (settings.first_answer, CallFailed("HeadBucket", "Timeout")),
    ):
        time = FakeTime()
        caller, sent = make_caller(time), list[float]()

        async def black_hole(time: FakeTime, sent: list[float], seconds: float, failure: CallFailed) -> None:
            sent.append(time.now)
            time.now += seconds
            raise failure

        with pytest.raises(CallFailed):
            await caller.call("bucket", "HeadBucket", partial(black_hole, time, sent, seconds, failure))
        assert len(sent) == 1, failure


async def test_refused_connection_to_a_server_that_answered_is_tried_with_patience() -> None:
    for first in ([], [CallFailed("HeadBucket", "SlowDown", 503)], [CallFailed("HeadBucket", "AccessDenied", 403)]):
        time = FakeTime()
        caller = make_caller(time, dice=LongestPause())
        with suppress(CallFailed):
            await caller.call("bucket", "HeadBucket", failing(*first))
        time.slept.clear()
        with pytest.raises(CallFailed):
            await caller.call("acl", "GetObjectAcl", always(REFUSED))
        assert len(time.slept) > 7
        time.slept.clear()
        with pytest.raises(CallFailed):
            await caller.call("bucket", "GetCallerIdentity", always(REFUSED), server="sts")
        assert len(time.slept) == 5


async def test_answer_that_breaks_http_or_is_no_xml_is_asked_for_twice() -> None:
    for kind in get_args(Kind):
        caller = make_caller()
        with pytest.raises(CallFailed):
            await caller.call(kind, "GetObjectAcl", always(CallFailed("GetObjectAcl", "BrokenReply")))
        assert caller.counts[kind] == 2
        if kind not in ("head", "get"):
            with pytest.raises(CallFailed):
                await caller.call(kind, "GetObjectAcl", always(CallFailed("GetObjectAcl", "500", 500)))
            assert caller.counts[kind] == 4


async def test_server_that_fails_at_a_setting_of_the_bucket_is_given_up_after_a_few_seconds() -> None:
    for dice in (None, LongestPause()):
        time = FakeTime()
        caller = make_caller(time, dice=dice)
        with pytest.raises(CallFailed):
            await caller.call("bucket", "GetBucketPolicy", always(CallFailed("GetBucketPolicy", "InternalError", 500)))
        assert sum(time.slept) <= 5.0
        assert caller.counts["bucket"] >= 10


async def test_timeouts_lower_the_permits_though_they_are_no_throttles() -> None:
    time = FakeTime()
    caller = make_caller(time, permits=ConcurrencyLimit(8, clock=time.clock))
    await caller.call("acl", "GetObjectAcl", failing(CallFailed("GetObjectAcl", "Timeout")))
    assert caller.permits.statistics().limit == 6
    assert caller.counts["throttled"] == 0


class Incurable(RateLimit):
    """A rate that has learned that S3 refuses the same share of the calls at any rate."""

    waiting_helps = False

    def refused(self, now: float, sent: float) -> bool:
        return False


class Lowest(RateLimit):
    """A rate that cannot fall further."""

    def refused(self, now: float, sent: float) -> bool:
        return True


async def test_refusals_that_slowing_down_does_not_cure_are_repeated_soon_and_leave_the_permits() -> None:
    time = FakeTime()
    permits = ConcurrencyLimit(64, clock=time.clock)
    caller = Caller(
        "audited", rate=Incurable(None, clock=time.clock), permits=permits, clock=time.clock, sleep=time.sleep
    )
    with pytest.raises(CallFailed):
        await caller.call("acl", "GetObjectAcl", always(SLOW_DOWN))
    assert (permits.statistics().limit, caller.counts["acl"]) == (64, 15)
    assert max(time.slept) <= 0.5
    time.slept.clear()
    with pytest.raises(CallFailed):
        await caller.call("acl", "GetObjectAcl", always(CallFailed("GetObjectAcl", "InternalError", 500)))
    assert max(time.slept) > 0.5


async def test_throttles_at_the_lowest_rate_lower_the_permits_and_answers_raise_them() -> None:
    time = FakeTime()
    permits = ConcurrencyLimit(8, clock=time.clock)
    rate = Lowest(None, clock=time.clock)
    caller = Caller("audited", rate=rate, permits=permits, clock=time.clock, sleep=time.sleep)
    await caller.call("acl", "GetObjectAcl", failing(SLOW_DOWN))
    assert permits.statistics().limit == 6
    for _ in range(30):
        await caller.call("acl", "GetObjectAcl", failing())
    assert permits.statistics().limit == 8


class TestBudget:
    async def test_not_one_call_more_than_allowed(self) -> None:
        caller = make_caller(max_calls=3)
        for _ in range(3):
            await caller.call("acl", "GetObjectAcl", failing())
        with pytest.raises(CallFailed) as caught:
            await caller.call("acl", "GetObjectAcl", failing())
        assert caught.value.code == "MaxCalls"
        assert caller.counts["acl"] == 3
        assert caller.budget_left == 0

    async def test_what_must_be_sent_is_sent_and_counted(self) -> None:
        caller = make_caller(max_calls=1)
        for _ in range(2):
            await caller.call("list", "ListObjectVersions", failing(), beyond_budget=True)
        assert caller.counts["list"] == 2
        assert caller.budget_left == 0


DOOMS = {
    ("ExpiredToken", 400): (CredentialsError, "have expired"),
    ("ExpiredTokenException", 400): (CredentialsError, "have expired.*renew them"),
    ("RequestExpired", 400): (CredentialsError, "have expired"),
    ("InvalidAccessKeyId", 403): (CredentialsError, "were refused"),
    ("InvalidClientTokenId", 403): (CredentialsError, "--profile"),
    ("SignatureDoesNotMatch", 403): (CredentialsError, "were refused"),
    ("RequestTimeTooSkewed", 403): (CredentialsError, "clock"),
    ("NoSuchBucket", 404): (BucketError, "no bucket named 'audited'"),
    ("PermanentRedirect", 301): (BucketError, "use --region eu-south-1$"),
    ("301", 301): (BucketError, "use --region eu-south-1$"),
    ("AuthorizationHeaderMalformed", 400): (BucketError, "another region"),
    ("IllegalLocationConstraintException", 400): (BucketError, "--region"),
}


async def test_failure_that_would_befall_every_call_ends_the_run() -> None:
    for (code, status), (error, words) in DOOMS.items():
        caller = make_caller()
        failure = CallFailed("GetObjectAcl", code, status, headers={"x-amz-bucket-region": "eu-south-1"})
        with pytest.raises(error, match=words) as caught:
            await caller.call("acl", "GetObjectAcl", always(failure))
        assert caught.value.__cause__ is failure
        assert caller.counts["acl"] == 1


async def test_redirect_without_a_region_that_can_be_asks_for_it() -> None:
    for named in ({}, *({"x-amz-bucket-region": one} for one in ("evil.example/#", "x; rm -rf ~", "eu-west-1\u202e"))):
        with pytest.raises(BucketError, match=r"\(PermanentRedirect\): give its region with --region$"):
            await make_caller().call(
                "acl", "GetObjectAcl", always(CallFailed("GetObjectAcl", "PermanentRedirect", 301, headers=named))
            )
