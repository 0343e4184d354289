"""The event for every bucket is delivered again: at once, after the end, or after an invocation that was killed."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from auditor.errors import RunComplete, RunTaken
from auditor.lambdas.audit import AuditFunction
from auditor.lambdas.claims import OLDEST, BucketBusy, Claims
from auditor.lambdas.start_claims import StartBusy, StartClaim, StartClaims
from auditor.model.target import Target
from auditor.runs.paths import parse_run_id
from auditor.runs.stores import open_store
from auditor.runs.stores.base import Change
from tests.lambdas.test_event import SCHEDULE
from tests.lambdas.test_handover import Account
from tests.support.schemas import faults
from tests.support.servers.accounts import OWN, AccountsServer

NAMES = [f"bucket-{number:02}" for number in range(8)]
EVENT = {"all_buckets": True}
START = "20261125T010203Z-aaaaaa"
DUPLICATE = "20261125T010208Z-aaaaaa"
"""The start of the same event, delivered five seconds later."""


@pytest.fixture
def server() -> Iterator[AccountsServer]:
    with AccountsServer() as made:
        made.give(OWN, *NAMES)
        for name in NAMES:
            for key in ("a", "b", "c"):
                made.put(name, key, b"x")
        yield made


@pytest.fixture
def service(server: AccountsServer, tmp_path: Path) -> AuditFunction:
    return AuditFunction(
        {
            "AUDITOR_ENDPOINT_URL": server.url,
            "AUDITOR_OUT": str(tmp_path),
            "AUDITOR_CONCURRENCY": "1",
            "AUDITOR_ONLY": "O02",
            "AUDITOR_BUCKETS": "*",
        }
    )


def report(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / f"account={OWN}" / "estate.json").read_text())
    return found


def runs(out: Path, bucket: str = "*") -> int:
    return len(list(out.glob(f"bucket={bucket}/run=*/summary.json")))


def wait_for_runs(out: Path, number: int) -> None:
    until = time.monotonic() + 60
    while runs(out) < number and time.monotonic() < until:
        time.sleep(0.02)


def check(account: Account, out: Path) -> None:
    """Exactly one start of every bucket is reported, without a hole."""
    assert report(out)["line"] == "8 buckets in 1 account = 8 audited + 0 excluded + 0 holes"
    assert runs(out) == len(NAMES)
    assert len(list(out.glob("account=*/start=*/estate.json"))) == 1
    assert (account.metric("RunsComplete"), account.metric("RunsFailed")) == (1, 0)
    assert account.messages == []


@pytest.mark.parametrize("event", [EVENT, SCHEDULE])
async def test_two_deliveries_at_once_have_one_balance(
    service: AuditFunction, server: AccountsServer, tmp_path: Path, event: Mapping[str, Any]
) -> None:
    account = Account(poll=0.05)
    answers = await asyncio.gather(*(service.handle(event, account.around(request="one")) for _ in range(2)))
    check(account, tmp_path)
    assert [answer["estate"]["complete"] for answer in answers] == [True, True]
    (told,) = (answer["left"] for answer in answers if "left" in answer)
    assert told == [f"the start {report(tmp_path)['estate']} has ended: there is nothing to do for this event"]
    assert not [fault for answer in answers for fault in faults("audit-result", answer)]
    listed = [call.bucket for _, call in server.seen if call.operation == "ListObjectsV2"]
    assert len(listed) == len(NAMES)


async def test_delivery_after_the_end_does_nothing(
    service: AuditFunction, server: AccountsServer, tmp_path: Path
) -> None:
    account = Account(poll=0.05)
    server.refused.add("bucket-03")
    first = await service.handle(EVENT, account.around(request="one"))
    assert first["estate"]["counts"]["holes"] == 1
    written, server.seen[:] = report(tmp_path), []
    await asyncio.sleep(1.1)  # the ID of a start has its second
    again = await service.handle(EVENT, account.around(request="one"))
    assert again == {"runs": [], "estate": written, "left": again["left"]}
    assert "has ended" in again["left"][0]
    assert report(tmp_path) == written
    assert not [call for _, call in server.seen if call.bucket]
    assert len(account.messages) == 1
    server.refused.clear()
    other = await service.handle(EVENT, account.around(request="two"))
    assert other["estate"]["complete"], "another event is another start"


async def test_hop_that_is_delivered_twice(service: AuditFunction, server: AccountsServer, tmp_path: Path) -> None:
    account = Account(poll=0.05)
    seen: list[str] = []

    def stopping(operation: str, key: str, nth: int) -> None:
        seen.append(operation)
        if len(seen) == 30:
            account.deadline.come()

    server.faults = [stopping]
    await service.handle(EVENT, account.around(request="one"))
    (event,) = account.events
    account.events.clear()
    late = await service.handle(EVENT, account.around(request="one"))
    assert (late["runs"], "has reached hop 1" in late["left"][0]) == ([], True)
    answers = await asyncio.gather(*(service.handle(event, account.around(request="hop")) for _ in range(2)))
    check(account, tmp_path)
    assert len([answer for answer in answers if "left" in answer]) == 1
    assert account.events == []
    after = await service.handle(event, account.around(request="hop"))
    assert "has ended" in after["left"][0]
    check(account, tmp_path)


@pytest.mark.parametrize("calls", [3, 12, 25, 40])
async def test_retry_after_an_invocation_that_was_killed(
    service: AuditFunction, server: AccountsServer, tmp_path: Path, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The killed one saves nothing. Its claims end with its deadline, which the retry waits for."""
    account = Account(seconds=1.0, poll=0.05)
    for module in ("claims", "start_claims"):
        monkeypatch.setattr(f"auditor.lambdas.{module}.AFTER_DEADLINE", 0.5)
    seen: list[str] = []
    killed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def counting(operation: str, key: str, nth: int) -> None:
        seen.append(operation)
        if len(seen) == calls:
            loop.call_soon_threadsafe(killed.set)

    def dead(*arguments: object, **end: object) -> None:
        raise AssertionError("a killed process gives nothing back")

    server.faults = [counting]
    with monkeypatch.context() as patch:
        patch.setattr(Claims, "give_back", dead)
        patch.setattr(StartClaims, "give_back", dead)
        first = asyncio.create_task(service.handle(EVENT, account.around(request="one")))
        await asyncio.wait({first, asyncio.create_task(killed.wait())}, return_when=asyncio.FIRST_COMPLETED)
        assert not first.done()
        first.cancel()
        with suppress(asyncio.CancelledError, AssertionError, BaseExceptionGroup):
            await first
    account.lines.clear()
    answer = await service.handle(EVENT, account.around(request="one"))
    assert answer["estate"]["complete"]
    check(account, tmp_path)


async def test_bucket_that_another_run_has_is_waited_for(service: AuditFunction, tmp_path: Path) -> None:
    account = Account(poll=0.05)
    with open_store(str(tmp_path)) as store:
        other = Claims(store, Target("bucket-02"), 0)
        other.take("20261125T000000Z-bbbbbb", follows=False, seconds=60.0)
        going = asyncio.create_task(service.handle(EVENT, account.around(request="one")))
        await asyncio.to_thread(wait_for_runs, tmp_path, len(NAMES) - 1)
        account.deadline.come()
        await going
    (event,) = account.events
    holes = {one["bucket"]: one["sentence"] for one in report(tmp_path)["buckets"] if one["outcome"] == "hole"}
    assert list(holes) == ["bucket-02"]
    with open_store(str(tmp_path)) as store:
        other.give_back("20261125T000000Z-bbbbbb", dropped=True)
    assert (await service.handle(event, account.around(request="two")))["estate"]["complete"]


async def test_newer_run_of_a_bucket_leaves_no_hole(service: AuditFunction, tmp_path: Path) -> None:
    """A person audits one bucket between two hops: the next hop audits it anew."""
    account = Account(poll=0.05)
    with open_store(str(tmp_path)) as store:
        folder = tmp_path / f"account={OWN}"
        await service.handle(EVENT, account.around(request="one"))
        found = report(tmp_path)
        (one,) = (one for one in found["buckets"] if one["bucket"] == "bucket-02")
        one |= {"outcome": "hole", "unfinished": True}
        path = folder / f"start={found['estate']}" / "estate.json"
        path.write_text(json.dumps(found))
        running = tmp_path / "bucket=bucket-02" / "running.json"
        running.write_text(running.read_text().replace('"ended": true', '"ended": false'))
        newer = Claims(store, Target("bucket-02"), 0)
        newer.take("20991125T000000Z-bbbbbb", follows=True, seconds=60.0)
        newer.give_back("20991125T000000Z-bbbbbb", ended=True)
    starts = json.loads((folder / "running.json").read_text())
    starts["starts"][found["estate"]] |= {"ended": False}
    (folder / "running.json").write_text(json.dumps(starts))
    answer = await service.handle({**EVENT, "run": found["estate"], "hop": 1}, account.around(request="two"))
    assert answer["estate"]["complete"]
    assert runs(tmp_path, "bucket-02") == 2


class Clock:
    """A clock for claims: a time a minute after START."""

    def __init__(self) -> None:
        self.now = parse_run_id(START).timestamp() + 60

    def __call__(self) -> float:
        return self.now


def claims(out: Path, clock: Clock, hop: int = 0, request: str | None = "one") -> StartClaims:
    return StartClaims(open_store(str(out)), "account=1", hop, request, clock)


def test_claim_of_a_start_goes_from_hop_to_hop(tmp_path: Path) -> None:
    clock = Clock()
    first = claims(tmp_path, clock)
    assert first.take(START, follows=False, seconds=100.0) == StartClaim(START)
    with pytest.raises(StartBusy):
        claims(tmp_path, clock).take(DUPLICATE, follows=False, seconds=100.0)
    first.give_back(START, passed=True)
    with pytest.raises(RunTaken, match="has reached hop 1"):
        claims(tmp_path, clock).take(DUPLICATE, follows=False, seconds=100.0)
    second = claims(tmp_path, clock, hop=1, request="two")
    assert second.take(START, follows=True, seconds=100.0) == StartClaim(START)
    with pytest.raises(StartBusy):
        claims(tmp_path, clock, hop=1, request="two").take(START, follows=True, seconds=100.0)
    first.give_back(START)  # it has the start no more, and changes nothing
    second.give_back(START, ended=True)
    for hop, request, wanted in ((0, "one", DUPLICATE), (1, "two", START)):
        late = claims(tmp_path, clock, hop, request)
        assert late.take(wanted, follows=hop > 0, seconds=100.0) == StartClaim(START, ended=True)
    assert claims(tmp_path, clock, 0, "a person").take(START, follows=True, seconds=1.0) == StartClaim(START)


class LostAnswers:
    """A bucket whose first answer to each write is lost: the store reads its own write, and makes the change again."""

    def __init__(self, out: Path) -> None:
        self._store = open_store(str(out))

    def update_json(self, path: str, change: Change) -> None:
        for _ in range(2):
            self._store.update_json(path, change)


def test_claim_of_a_start_whose_answer_is_lost_is_had(tmp_path: Path) -> None:
    clock = Clock()
    mine = StartClaims(LostAnswers(tmp_path), "account=1", 0, "one", clock)  # type: ignore[arg-type]
    assert mine.take(START, follows=False, seconds=100.0) == StartClaim(START)
    with pytest.raises(StartBusy):
        claims(tmp_path, clock).take(DUPLICATE, follows=False, seconds=100.0)
    mine.give_back(START, passed=True)
    assert claims(tmp_path, clock, hop=1, request="two").take(START, follows=True, seconds=9.0) == StartClaim(START)


def test_claim_of_a_bucket_whose_answer_is_lost_is_had(tmp_path: Path) -> None:
    clock, target = Clock(), Target("audited")
    store = LostAnswers(tmp_path)
    mine = Claims(store, target, 0, clock)  # type: ignore[arg-type]
    assert mine.take(START, follows=False, seconds=100.0).run == START
    mine.keep(START, 100.0, at_work=True)
    with pytest.raises(BucketBusy):
        Claims(open_store(str(tmp_path)), target, 0, clock).take(DUPLICATE, follows=False, seconds=100.0)
    mine.give_back(START, ended=True)
    with pytest.raises(RunComplete):
        Claims(open_store(str(tmp_path)), target, 0, clock).take(DUPLICATE, follows=False, seconds=100.0)


def test_claim_of_a_killed_invocation_ends_with_its_deadline(tmp_path: Path) -> None:
    clock = Clock()
    claims(tmp_path, clock).take(START, follows=False, seconds=100.0)
    clock.now += 104.0
    with pytest.raises(StartBusy):
        claims(tmp_path, clock).take(DUPLICATE, follows=False, seconds=100.0)
    clock.now += 2.0
    assert claims(tmp_path, clock).take(DUPLICATE, follows=False, seconds=100.0) == StartClaim(START)


def test_claims_of_other_starts_are_apart_and_old_ones_go(tmp_path: Path) -> None:
    clock = Clock()
    claims(tmp_path, clock).take(START, follows=False, seconds=100.0)
    other = "20261125T010203Z-cccccc"
    assert claims(tmp_path, clock, request="x").take(other, follows=False, seconds=100.0) == StartClaim(other)
    clock.now += OLDEST + 1
    claims(tmp_path, clock, request="y").take("20261128T010203Z-dddddd", follows=False, seconds=100.0)
    written = json.loads((tmp_path / "account=1" / "running.json").read_text())
    assert list(written["starts"]) == ["20261128T010203Z-dddddd"]
