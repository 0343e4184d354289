"""The checks of leases: one holder at a time, and a write with an old lease is refused."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any, Final

from msgspec.structs import replace

from auditor.errors import LeaseLostError, LedgerError
from auditor.ledger.base import Ledger
from auditor.ledger.leases import Held, Lease, Work

from .base import OpenLedger, check, opened, raises

WORK: Final = Work(bucket="bucket", key="a/key", version_id="v1", etag="etag", algorithms=("sha256", "md5"))
CHECKPOINT: Final = {"format": 1, "bytes": 64, "states": {"sha256": {"h": "00", "naïve\n": [1, None, True, 1.5]}}}
_OTHER_WORKS: Final[list[dict[str, Any]]] = [
    {"bucket": "b2"},
    {"key": "k"},
    {"version_id": None},
    {"etag": "e"},
    {"algorithms": ("sha256",)},
]


class _LeaseClock:
    """A clock of seconds since the epoch, which a check sets."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


async def claimed(ledger: Ledger, owner: str = "one", work: Work = WORK, seconds: float = 60.0) -> Lease:
    lease = await ledger.claim(work, owner, seconds)
    assert isinstance(lease, Lease)
    return lease


@check
async def first_claim_is_a_lease_and_the_second_ones_is_held(opener: OpenLedger) -> None:
    clock = _LeaseClock()
    async with opener(clock) as ledger:
        lease = await ledger.claim(WORK, "one", 60.0)
        assert lease == Lease(work=WORK, owner="one", until=clock.now + 60, fence=1, hops=1)
        clock.now += 59
        assert await ledger.claim(WORK, "two", 60.0) == Held("one", clock.now + 1)


@check
async def lease_that_ran_out_is_taken_over_with_its_checkpoint_and_the_old_holder_writes_nothing(
    opener: OpenLedger,
) -> None:
    clock = _LeaseClock()
    async with opener(clock) as ledger:
        old = await ledger.renew(await claimed(ledger), 60.0, CHECKPOINT)
        clock.now += 60
        new = await claimed(ledger, "two")
        assert (new.fence, new.hops, new.checkpoint) == (2, 2, CHECKPOINT)
        with raises(LeaseLostError, r"'a/key' in bucket 'bucket' is no longer 'one'"):
            await ledger.renew(old, 60.0, {"bytes": 0})
        await ledger.release(old, done=True)
        await ledger.release(new, done=False)
        assert (await claimed(ledger, "three")).checkpoint == CHECKPOINT


@check
async def lease_of_a_dead_holder_whose_clock_ran_ahead_lasts_no_longer_than_its_length(opener: OpenLedger) -> None:
    clock = _LeaseClock()
    async with opener(clock) as ledger:
        clock.now += 400
        ahead = await ledger.renew(await claimed(ledger, "ahead"), 60.0, CHECKPOINT)
        clock.now -= 400
        assert await ledger.claim(WORK, "two", 60.0) == Held("ahead", clock.now + 60)
        clock.now += 30
        assert await ledger.claim(WORK, "three", 60.0) == Held("ahead", clock.now + 30)
        clock.now += 30
        new = await claimed(ledger, "two")
        assert new.checkpoint == CHECKPOINT
        with raises(LeaseLostError):
            await ledger.renew(ahead, 60.0)


@check
async def holder_whose_clock_runs_ahead_keeps_its_lease_while_it_renews_it(opener: OpenLedger) -> None:
    clock = _LeaseClock()
    async with opener(clock) as ledger:
        clock.now += 400
        ahead = await claimed(ledger, "ahead")
        for _ in range(3):
            clock.now -= 400
            assert isinstance(await ledger.claim(WORK, "two", 60.0), Held)
            clock.now += 440
            ahead = await ledger.renew(ahead, 60.0)


@check
async def lease_that_ran_out_and_that_nobody_took_is_renewed(opener: OpenLedger) -> None:
    clock = _LeaseClock()
    async with opener(clock) as ledger:
        lease = await claimed(ledger)
        clock.now += 600
        assert (await ledger.renew(lease, 60.0)).until == clock.now + 60
        assert isinstance(await ledger.claim(WORK, "two", 60.0), Held)


@opened
async def works_that_differ_in_one_field_are_two(ledger: Ledger) -> None:
    await claimed(ledger)
    for other in _OTHER_WORKS:
        await claimed(ledger, "two", replace(WORK, **other))


@opened
async def works_that_mean_the_same_are_one(ledger: Ledger) -> None:
    await claimed(ledger, work=replace(WORK, algorithms=("md5", "sha256")))
    assert isinstance(await ledger.claim(WORK, "two", 60.0), Held)
    await claimed(ledger, work=replace(WORK, key="k", version_id=None))
    assert isinstance(await ledger.claim(replace(WORK, key="k", version_id="null"), "two", 60.0), Held)


@opened
async def renewed_without_a_checkpoint_it_keeps_the_one_before(ledger: Ledger) -> None:
    lease = await ledger.renew(await claimed(ledger), 60.0, CHECKPOINT)
    lease = await ledger.renew(lease, 60.0)
    assert lease.checkpoint == CHECKPOINT
    await ledger.release(lease, done=False)
    assert (await claimed(ledger, "two")).checkpoint == CHECKPOINT


@opened
async def owner_claims_again_what_it_holds_and_its_earlier_lease_is_void(ledger: Ledger) -> None:
    first = await ledger.renew(await claimed(ledger), 60.0, CHECKPOINT)
    second = await claimed(ledger)
    assert (second.fence, second.checkpoint) == (first.fence + 1, CHECKPOINT)
    with raises(LeaseLostError):
        await ledger.renew(first, 60.0)


@opened
async def work_that_is_done_is_forgotten_but_for_its_fence(ledger: Ledger) -> None:
    old = await ledger.renew(await claimed(ledger), 60.0, CHECKPOINT)
    await ledger.release(old, done=True)
    with raises(LeaseLostError):
        await ledger.renew(old, 60.0)
    again = await claimed(ledger)
    assert (again.fence, again.hops, again.checkpoint) == (2, 1, None)


@opened
async def checkpoint_that_an_item_would_not_hold_is_refused_and_the_one_before_stays(ledger: Ledger) -> None:
    lease = await ledger.renew(await claimed(ledger), 60.0, CHECKPOINT)
    await ledger.renew(lease, 60.0, {"x": "y" * (300 * 1024 - 8)})
    with raises(LedgerError, r"307,201 bytes is too large for the ledger, which takes 307,200"):
        await ledger.renew(lease, 60.0, {"x": "y" * (300 * 1024 - 7)})
    assert isinstance(await ledger.claim(WORK, "two", 60.0), Held)


@check
async def of_64_claimants_one_wins(opener: OpenLedger) -> None:
    async with AsyncExitStack() as stack:
        ledgers = [await stack.enter_async_context(opener()) for _ in range(4)]
        answers = await asyncio.gather(
            *(ledgers[number % 4].claim(WORK, f"owner-{number}", 60.0) for number in range(64))
        )
    winners = [answer for answer in answers if isinstance(answer, Lease)]
    assert [winner.fence for winner in winners] == [1]
    assert {answer.owner for answer in answers if isinstance(answer, Held)} == {winners[0].owner}


@check
async def of_64_that_take_over_at_once_one_does(opener: OpenLedger) -> None:
    clock = _LeaseClock()
    async with opener(clock) as ledger:
        await ledger.renew(await claimed(ledger, "dead"), 60.0, CHECKPOINT)
        clock.now += 61
        answers = await asyncio.gather(*(ledger.claim(WORK, f"owner-{number}", 60.0) for number in range(64)))
    assert [answer.checkpoint for answer in answers if isinstance(answer, Lease)] == [CHECKPOINT]
