"""Large objects under a lease: one worker at a time, a checkpoint for the next, nothing written without the lease."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from auditor.errors import CredentialsError, LeaseLostError, LedgerError
from auditor.hashing.digest.options import Save
from auditor.hashing.digest.result import Failed, Hashed, Paused, Result, Superseded
from auditor.hashing.queue.message import HashTask
from auditor.hashing.worker.lease import LeasedHasher, Waiting
from auditor.ledger import open_ledger
from auditor.ledger.base import Ledger
from auditor.ledger.leases import Held, Lease, Work
from tests.support.fakes.ledger import Hooked

TASK = HashTask("key", None, "etag", 1000, attempts=2, hops=3)
WORK = Work(bucket="bucket", key="key", version_id=None, etag="etag", algorithms=("sha256",))
STATE = {"format": 1, "bytes": 640}


class Clock:
    """Seconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Reader:
    """A scripted read. steps: checkpoints to save; result: to return. begun: checkpoints that it got."""

    def __init__(self, result: Result, *steps: Mapping[str, Any] | None) -> None:
        self.result = result
        self.steps = steps
        self.begun: list[Mapping[str, Any] | None] = []
        self.kept: list[Hashed] = []

    async def read(self, checkpoint: Mapping[str, Any] | None, save: Save) -> Result:
        self.begun.append(checkpoint)
        for step in self.steps:
            await save(step)
        return self.result

    async def keep(self, hashed: Hashed) -> Result:
        self.kept.append(hashed)
        return hashed


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def ledger(tmp_path: Path, clock: Clock) -> AsyncIterator[Ledger]:
    async with open_ledger(f"sqlite:{tmp_path / 'ledger.db'}", clock=clock) as opened:
        yield opened


@pytest.fixture
def hasher(ledger: Ledger, clock: Clock) -> LeasedHasher:
    return LeasedHasher(ledger, "me", lease_seconds=300, clock=clock)


async def claim(ledger: Ledger, owner: str = "other", seconds: float = 300) -> Lease:
    lease = await ledger.claim(WORK, owner, seconds)
    assert isinstance(lease, Lease)
    return lease


async def test_hashed_object_is_recorded_once_and_leaves_no_lease_and_no_checkpoint(
    hasher: LeasedHasher, ledger: Ledger
) -> None:
    reader = Reader(Hashed(TASK, {"sha256": "00"}), STATE)
    assert await hasher.hash(WORK, TASK, reader.read, reader.keep) == reader.result
    assert reader.kept == [reader.result]
    assert (await claim(ledger)).checkpoint is None


async def test_paused_object_continues_at_its_checkpoint(hasher: LeasedHasher, ledger: Ledger) -> None:
    first = Reader(Paused(TASK, STATE, 640))
    assert await hasher.hash(WORK, TASK, first.read, first.keep) == first.result
    second = Reader(Hashed(TASK, {"sha256": "00"}))
    await hasher.hash(WORK, TASK, second.read, second.keep)
    assert (first.begun, second.begun) == ([None], [STATE])
    assert (first.kept, second.kept) == ([], [second.result])


async def test_pause_without_a_checkpoint_releases_the_lease_too(hasher: LeasedHasher, ledger: Ledger) -> None:
    reader = Reader(Paused(TASK, None, 640, "no libcrypto"))
    await hasher.hash(WORK, TASK, reader.read, reader.keep)
    assert (await claim(ledger)).checkpoint is None


async def test_object_under_another_lease_waits_until_that_ends(
    hasher: LeasedHasher, ledger: Ledger, clock: Clock
) -> None:
    await claim(ledger, seconds=300)
    clock.now += 100.5
    reader = Reader(Hashed(TASK, {}))
    assert await hasher.hash(WORK, TASK, reader.read, reader.keep) == Waiting(TASK, 200)
    assert reader.begun == []


async def test_two_copies_of_a_message_in_one_process_are_two_claimants(hasher: LeasedHasher) -> None:
    inner = Reader(Hashed(TASK, {}))
    found: list[Result | Waiting] = []

    async def read(checkpoint: Mapping[str, Any] | None, save: Save) -> Result:
        found.append(await hasher.hash(WORK, TASK, inner.read, inner.keep))
        return Superseded(TASK, "Vanished")

    await hasher.hash(WORK, TASK, read, inner.keep)
    assert found == [Waiting(TASK, 300)]
    assert inner.begun == []


async def test_crashed_workers_object_continues_at_its_last_checkpoint_when_its_lease_expires(
    hasher: LeasedHasher, ledger: Ledger, clock: Clock
) -> None:
    await ledger.renew(await claim(ledger, "crashed"), 300, STATE)
    clock.now += 301
    reader = Reader(Hashed(TASK, {}))
    await hasher.hash(WORK, TASK, reader.read, reader.keep)
    assert reader.begun == [STATE]


@pytest.mark.parametrize("at_the_end", [False, True], ids=["in mid-read", "before it is recorded"])
async def test_lost_lease_ends_the_work_and_writes_nothing(
    hasher: LeasedHasher, ledger: Ledger, clock: Clock, at_the_end: bool
) -> None:
    taken: list[Lease] = []
    went_on: list[bool] = []
    reader = Reader(Hashed(TASK, {"sha256": "00"}))

    async def read(checkpoint: Mapping[str, Any] | None, save: Save) -> Result:
        clock.now += 301
        taken.append(await claim(ledger))
        if not at_the_end:
            await save({"format": 1, "bytes": 0})
            went_on.append(True)
        return reader.result

    assert await hasher.hash(WORK, TASK, read, reader.keep) == Waiting(TASK, 300)
    assert (reader.kept, went_on) == ([], [])
    held = await ledger.claim(WORK, "third", 1)
    assert isinstance(held, Held)  # it is the other's still: not released by the one that lost it
    assert (await ledger.renew(taken[0], 300)).checkpoint is None


async def test_each_save_extends_the_lease(hasher: LeasedHasher, ledger: Ledger, clock: Clock) -> None:
    reader = Reader(Hashed(TASK, {}))

    async def read(checkpoint: Mapping[str, Any] | None, save: Save) -> Result:
        for _ in range(5):
            clock.now += 200
            assert isinstance(await ledger.claim(WORK, "thief", 300), Held)
            await save(None)
        return reader.result

    await hasher.hash(WORK, TASK, read, reader.keep)
    assert reader.kept == [reader.result]


@pytest.mark.parametrize(("steps", "attempts", "hops"), [((), 2, 3), ((None,), 2, 3), ((STATE,), 0, 4)])
async def test_failure_counts_as_an_attempt_only_without_progress(
    hasher: LeasedHasher, ledger: Ledger, steps: tuple[Mapping[str, Any] | None, ...], attempts: int, hops: int
) -> None:
    reader = Reader(Failed(TASK, "SlowDown", retryable=True), *steps)
    failed = await hasher.hash(WORK, TASK, reader.read, reader.keep)
    assert isinstance(failed, Failed)
    assert (failed.task.attempts, failed.task.hops) == (attempts, hops)
    assert (await claim(ledger)).checkpoint == (STATE if STATE in steps else None)


@pytest.mark.parametrize(
    ("result", "left"),
    [(Superseded(TASK, "Vanished"), None), (Failed(TASK, "AccessDenied", retryable=False), STATE)],
)
async def test_checkpoint_stays_for_another_attempt_only(
    hasher: LeasedHasher, ledger: Ledger, result: Result, left: object
) -> None:
    reader = Reader(result, STATE)
    await hasher.hash(WORK, TASK, reader.read, reader.keep)
    assert (await claim(ledger)).checkpoint == left


async def test_error_that_ends_all_work_frees_the_lease(hasher: LeasedHasher, ledger: Ledger) -> None:
    async def read(checkpoint: Mapping[str, Any] | None, save: Save) -> Result:
        await save(STATE)
        raise CredentialsError("the credentials have expired")

    with pytest.raises(CredentialsError):
        await hasher.hash(WORK, TASK, read, Reader(Hashed(TASK, {})).keep)
    assert (await claim(ledger)).checkpoint == STATE


async def test_old_lease_is_refused_after_a_takeover_by_the_hasher(
    hasher: LeasedHasher, ledger: Ledger, clock: Clock
) -> None:
    old = await claim(ledger, "crashed")
    clock.now += 301
    await hasher.hash(WORK, TASK, (reader := Reader(Paused(TASK, STATE, 640))).read, reader.keep)
    with pytest.raises(LeaseLostError):
        await ledger.renew(old, 300, {"format": 1, "bytes": 64})
    assert (await claim(ledger)).checkpoint == STATE


@pytest.mark.parametrize(("passed", "kept"), [(299, True), (300, False)])
async def test_ledger_that_fails_during_the_hashing_ends_it_only_when_the_lease_expires(
    ledger: Ledger, clock: Clock, passed: int, kept: bool
) -> None:
    troubles = [LedgerError("throttled")] * 2
    reader = Reader(Hashed(TASK, {}))

    def hook(name: str) -> None:
        if name == "renew" and troubles:
            raise troubles.pop()

    async def read(checkpoint: Mapping[str, Any] | None, save: Save) -> Result:
        await save(STATE)
        clock.now += passed
        await save(STATE)
        return reader.result

    hasher = LeasedHasher(Hooked(ledger, hook), "me", lease_seconds=300, clock=clock)
    if kept:
        await hasher.hash(WORK, TASK, read, reader.keep)
    else:
        with pytest.raises(LedgerError, match="throttled"):
            await hasher.hash(WORK, TASK, read, reader.keep)
    assert reader.kept == ([reader.result] if kept else [])
