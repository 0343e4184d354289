"""An event for every bucket of the account: each is audited, excluded or a hole, over as many hops as it takes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from auditor.errors import UsageError
from auditor.lambdas.audit import AuditFunction
from auditor.lambdas.claims import Claims
from auditor.lambdas.event import read_event
from auditor.lambdas.start_claims import StartClaims
from auditor.runs.stores.local import LocalStore
from tests.lambdas.test_handover import Account
from tests.support.schemas import faults
from tests.support.servers.accounts import OWN, AccountsServer

NAMES = [f"bucket-{number:02}" for number in range(8)]


@pytest.fixture
def server() -> Iterator[AccountsServer]:
    with AccountsServer() as made:
        made.give(OWN, *NAMES)
        for name in NAMES:
            for key in ("a", "b", "c"):
                made.put(name, key, b"x")
        yield made


def environ(server: AccountsServer, out: Path, **more: str) -> Mapping[str, str]:
    return {
        "AUDITOR_ENDPOINT_URL": server.url,
        "AUDITOR_OUT": str(out),
        "AUDITOR_CONCURRENCY": "1",
        "AUDITOR_ONLY": "O02",
        **more,
    }


def written(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / f"account={OWN}" / "estate.json").read_text())
    counts = found["counts"]
    assert not faults("audit-result", {"runs": [], "estate": found})
    assert counts["buckets"] == counts["audited"] + counts["excluded"] + counts["holes"] == len(found["buckets"])
    return found


async def test_every_bucket_in_one_invocation(server: AccountsServer, tmp_path: Path) -> None:
    account = Account()
    server.put("bucket-03", "open", b"x", acl="public-read")
    server.refused.add("bucket-05")
    answer = await AuditFunction(environ(server, tmp_path)).handle({"all_buckets": True}, account.around())
    report = written(tmp_path)
    assert answer == {"runs": [], "estate": report}
    assert report["line"] == "8 buckets in 1 account = 7 audited + 0 excluded + 1 hole"
    (hole,) = (one for one in report["buckets"] if one["outcome"] == "hole")
    assert (hole["bucket"], "s3:ListBucket" in hole["sentence"]) == ("bucket-05", True)
    assert {call.headers.get("x-amz-expected-bucket-owner") for _, call in server.seen if call.bucket} == {OWN}
    (message,) = account.messages
    assert message.startswith(f"S3 audit: {report['line']}")
    assert "The audit of s3://bucket-03" in message
    assert len(account.finished) == 7
    assert account.metric("Objects") == 22
    assert account.metric("RunsIncomplete") == 1
    assert account.metric("RunsFailed") == 1
    assert len(account.lines) == 1
    assert report["line"] in (tmp_path / f"account={OWN}" / "index.html").read_text()


async def test_hops_add_up_to_one_report(server: AccountsServer, tmp_path: Path) -> None:
    """At each deadline the buckets that have ended stay ended, and the interrupted ones go on in their folders."""
    account = Account()
    service = AuditFunction(environ(server, tmp_path))
    server.put("bucket-03", "open", b"x", acl="public-read")
    server.refused.add("bucket-00")
    seen: list[str] = []

    def stopping(operation: str, key: str, nth: int) -> None:
        seen.append(operation)
        if len(seen) in (59, 85):
            account.deadline.come()

    server.faults = [stopping]
    await service.handle({"all_buckets": True}, account.around())
    hops, audited = [], []
    while account.events:
        (event,) = account.events
        account.events.clear()
        progress = written(tmp_path)
        assert not progress["complete"]
        assert event["run"] == progress["estate"]
        hops.append(event["hop"])
        audited.append(progress["counts"]["audited"])
        assert account.messages == []
        await service.handle(event, account.around())
    report = written(tmp_path)
    assert hops == list(range(1, len(hops) + 1))
    assert len(hops) > 1
    assert audited == sorted(audited)
    assert report["line"] == "8 buckets in 1 account = 7 audited + 0 excluded + 1 hole"
    assert report["coverage"]["audited"] == 22
    assert report["verdicts"]["exposed"] == 1
    assert runs(tmp_path) == 7, "each bucket has one run"
    assert len([call for _, call in server.seen if call.bucket == "bucket-00" and call.operation == "HeadBucket"]) == 1
    assert len(account.messages) == 1
    assert account.metric("RunsHandedOn") == len(hops)
    assert account.metric("RunsIncomplete") == 1
    assert len(account.finished) == 7


async def test_without_a_next_invocation_the_rest_are_holes(server: AccountsServer, tmp_path: Path) -> None:
    account = Account()
    service = AuditFunction(environ(server, tmp_path))
    server.faults = [lambda operation, key, nth: account.deadline.come() if key == "b" else None]
    await service.handle({"all_buckets": True}, account.around(hands_on=False))
    report = written(tmp_path)
    assert report["stopped"] == "the deadline is near"
    assert report["counts"]["holes"] >= 5
    assert all("the deadline is near" in one["sentence"] for one in report["buckets"] if one["outcome"] == "hole")
    assert len(account.messages) == 1


async def test_wrong_event_is_one_sentence(server: AccountsServer, tmp_path: Path) -> None:
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"all_buckets": "yes"}, "all_buckets is true or left out"),
        ({"all_buckets": True, "bucket": "b-1"}, "all_buckets and bucket cannot be combined"),
        ({"all_buckets": True, "prefix": "p"}, "all_buckets and prefix cannot be combined"),
        ({"all_buckets": True, "run": 3}, "is a run ID"),
        ({"all_buckets": False}, "no bucket to audit"),
        ({"run": "20261125T000000Z-000000"}, "needs a bucket"),
    )
    for event, word in wrong:
        account = Account()
        with pytest.raises(UsageError, match=word):
            await AuditFunction(environ(server, tmp_path)).handle(event, account.around())
        assert len(account.messages) == 1
    assert not server.seen
    with pytest.raises(UsageError, match="is for the audit function"):
        read_event({"all_buckets": True}, {"AUDITOR_LEDGER": "sqlite:d.db"}, "verify")


# The event is delivered again: at once, after the end, or after an invocation that was killed.

EVENT = {"all_buckets": True}


@pytest.fixture
def service(server: AccountsServer, tmp_path: Path) -> AuditFunction:
    return AuditFunction(environ(server, tmp_path, AUDITOR_BUCKETS="*"))


def runs(out: Path) -> int:
    return len(list(out.glob("bucket=*/run=*/summary.json")))


def wait_for_runs(out: Path, number: int) -> None:
    until = time.monotonic() + 60
    while runs(out) < number and time.monotonic() < until:
        time.sleep(0.02)


def check(account: Account, out: Path) -> None:
    """Exactly one start of every bucket is reported, without a hole."""
    assert written(out)["line"] == "8 buckets in 1 account = 8 audited + 0 excluded + 0 holes"
    assert runs(out) == len(NAMES)
    assert len(list(out.glob("account=*/start=*/estate.json"))) == 1
    assert (account.metric("RunsComplete"), account.metric("RunsFailed")) == (1, 0)
    assert account.messages == []


async def test_two_deliveries_at_once_have_one_balance(
    service: AuditFunction, server: AccountsServer, tmp_path: Path
) -> None:
    account = Account(poll=0.05)
    answers = await asyncio.gather(*(service.handle(EVENT, account.around(request="one")) for _ in range(2)))
    check(account, tmp_path)
    assert [answer["estate"]["complete"] for answer in answers] == [True, True]
    (told,) = (answer["left"] for answer in answers if "left" in answer)
    assert told == [f"the start {written(tmp_path)['estate']} has ended: there is nothing to do for this event"]
    assert not [fault for answer in answers for fault in faults("audit-result", answer)]
    listed = [call.bucket for _, call in server.seen if call.operation == "ListObjectsV2"]
    assert len(listed) == len(NAMES)
    other = await service.handle(EVENT, account.around(request="two"))
    assert other["estate"]["estate"] != answers[0]["estate"]["estate"], "another event is another start"


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


@pytest.mark.parametrize("calls", [12, 40])
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


def claim(out: Path, bucket: str, run: str, seconds: float, *, ended: bool = False) -> None:
    """Leave the claim of another invocation on a bucket, which ends after so many seconds."""
    holder = {"run": run, "hop": 0, "request": "another", "until": time.time() + seconds}
    running = {"format": 1, "holder": holder, "runs": {"": {"run": run, "ended": ended}}}
    LocalStore(out).put(f"bucket={bucket}/running.json", json.dumps(running).encode())


async def test_bucket_that_another_run_has_is_waited_for(service: AuditFunction, tmp_path: Path) -> None:
    account = Account(poll=0.05)
    claim(tmp_path, "bucket-02", "20260102T000000Z-bbbbbb", 60.0)
    going = asyncio.create_task(service.handle(EVENT, account.around(request="one")))
    await asyncio.to_thread(wait_for_runs, tmp_path, len(NAMES) - 1)
    account.deadline.come()
    await going
    (event,) = account.events
    holes = {one["bucket"]: one["sentence"] for one in written(tmp_path)["buckets"] if one["outcome"] == "hole"}
    assert list(holes) == ["bucket-02"]
    claim(tmp_path, "bucket-02", "20260102T000000Z-bbbbbb", -1.0, ended=True)
    assert (await service.handle(event, account.around(request="two")))["estate"]["complete"]
