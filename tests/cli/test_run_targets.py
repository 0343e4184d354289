"""Several targets of one command: side by side, under one ceiling, with one exit code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from auditor.cli.progress import Show, Together
from auditor.cli.run_targets import combined, each_target
from auditor.errors import BucketError, UsageError
from auditor.model.target import Target
from auditor.progress import Snapshot
from auditor.reports.terminal import TargetResult, closing_table
from auditor.s3.calls import Caller
from auditor.s3.concurrency import ConcurrencyLimit
from auditor.s3.rate import RateLimit
from tests.support.samples.reports import sample_summary

TARGETS = [Target(f"bucket-{number:02}") for number in range(60)]


@asynccontextmanager
async def opening() -> AsyncIterator[None]:
    yield


async def test_targets_are_worked_on_side_by_side_and_never_more_than_that() -> None:
    """Each of the first eight waits for the others, so that one after the other would never end."""
    running, most = 0, 0
    eight = asyncio.Event()

    async def one(target: Target, shared: None, stop: object, show: Show) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 8:
            eight.set()
        async with show(lambda: Snapshot(what=target.uri, objects=1, seconds=1.0)):
            await eight.wait()
            await asyncio.sleep(0)
        running -= 1
        return 0

    assert await each_target(TARGETS, opening(), one, verb="audited", kept="nothing", at_once=8) == 0
    assert most == 8


async def test_failures_of_some_are_holes_and_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[tuple[str, str, int]] = []

    async def one(target: Target, shared: None, stop: object, show: Show) -> int:
        if target is TARGETS[1]:
            raise BucketError("no such bucket")
        if target is TARGETS[2]:
            raise UsageError("too few calls")
        return 3

    code = await each_target(
        TARGETS[:4],
        opening(),
        one,
        verb="audited",
        kept="nothing",
        at_once=2,
        failed=lambda target, sentence, code: told.append((target.bucket, sentence, code)),
    )
    assert code == 4
    assert told == [("bucket-01", "no such bucket", 1), ("bucket-02", "s3://bucket-02: too few calls", 1)]
    assert "auditor: no such bucket\n" in capsys.readouterr().err


async def test_a_wrong_setting_of_the_one_target_is_raised() -> None:
    async def one(*_: object) -> int:
        raise UsageError("too few calls")

    with pytest.raises(UsageError, match="too few"):
        await each_target(TARGETS[:1], opening(), one, verb="audited", kept="nothing")


async def test_a_bug_at_one_target_ends_the_others() -> None:
    done = []

    async def one(target: Target, *_: object) -> int:
        if target is TARGETS[0]:
            raise ZeroDivisionError
        await asyncio.sleep(0)
        done.append(target)
        return 0

    with pytest.raises(ZeroDivisionError):
        await each_target(TARGETS, opening(), one, verb="audited", kept="nothing", at_once=2)
    assert len(done) < 2


@pytest.mark.parametrize(
    ("codes", "code"),
    [([0, 0], 0), ([0, 3], 3), ([3, 4], 4), ([0, 1], 4), ([1, 3], 4), ([1, 1], 1), ([1], 1), ([1, 4], 4)],
)
def test_one_exit_code(codes: list[int], code: int) -> None:
    assert combined(codes) == code


async def test_progress_is_the_sum_of_the_targets() -> None:
    together = Together(3)
    async with together.show(lambda: Snapshot(what="a", objects=2, seconds=1.0)):
        pass
    async with together.show(lambda: Snapshot(what="b", objects=3, seconds=1.0)):
        seen = together.snapshot()
    assert (seen.what, seen.objects, seen.detail) == ("3 targets", 5, "1 ended, 1 running")


async def test_callers_share_the_ceiling() -> None:
    now, slept = 0.0, []

    async def sleep(seconds: float) -> None:
        nonlocal now
        slept.append(seconds)
        now += seconds

    ceiling = RateLimit(10.0, clock=lambda: now, sleep=sleep)
    callers = [
        Caller("b", rate=RateLimit(None), permits=ConcurrencyLimit(1), ceiling=ceiling, clock=lambda: now)
        for _ in range(2)
    ]

    async def answer() -> None:
        return None

    for _ in range(10):
        for caller in callers:
            await caller.call("head", "HeadObject", answer)
    assert 1.5 < sum(slept) < 2.5  # twenty calls at ten per second, by the clock of the test


def test_the_table_fits_and_names_what_failed() -> None:
    summary = sample_summary()
    results = [TargetResult(Target("b" * 63, "p\x1b/"), summary, 3), TargetResult(Target("gone"), None, 1)]
    head, first, second, sums = closing_table(results, 60).splitlines()
    assert max(map(len, (head, first, second))) <= 65
    assert first.isprintable()
    assert second.split() == ["FAILED", "-", "-", "-", "s3://gone"]
    assert sums.startswith("2 targets: 1 FAILED, 1 FINDINGS; ")
