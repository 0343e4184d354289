"""An event for every bucket of the account: each is audited, excluded or a hole, at once or by the state machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auditor.errors import UsageError
from auditor.lambdas.audit import AuditFunction
from auditor.lambdas.event import read_event
from auditor.lambdas.lease import BucketLease
from auditor.lambdas.start import FunctionStart
from tests.support.function_account import Account
from tests.support.schemas import faults
from tests.support.servers.accounts import OWN, AccountsServer
from tests.support.state_machine import run_machine

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


async def test_invocations_add_up_to_one_report(server: AccountsServer, tmp_path: Path) -> None:
    """At the deadline the buckets that have ended stay ended, and the interrupted ones continue in their folders."""
    account = Account()
    service = AuditFunction(environ(server, tmp_path))
    server.put("bucket-03", "open", b"x", acl="public-read")
    server.refused.add("bucket-00")
    seen: list[str] = []

    def stopping(operation: str, key: str, nth: int) -> None:
        seen.append(operation)
        if len(seen) == 75:
            account.deadline.come()

    server.faults = [stopping]
    await service.handle({"all_buckets": True}, account.around())
    (event,) = account.events
    progress = written(tmp_path)
    assert not progress["complete"]
    assert event == {"all_buckets": True, "start": progress["estate"]}
    assert account.messages == []
    done = await run_machine(lambda given: service.handle(given, account.around()), event)
    report = written(tmp_path)
    assert (done["next"], done["estate"]) == ("incomplete", report)
    assert report["line"] == "8 buckets in 1 account = 7 audited + 0 excluded + 1 hole"
    assert report["coverage"]["audited"] == 22
    assert report["verdicts"]["exposed"] == 1
    assert runs(tmp_path) == 7, "each bucket has one run"
    assert len([call for _, call in server.seen if call.bucket == "bucket-00" and call.operation == "HeadBucket"]) == 1
    assert len(account.messages) == 1
    assert account.metric("RunsHandedOn") >= 1
    assert account.metric("RunsIncomplete") == 1
    assert len(account.finished) == 7


async def test_without_a_machine_the_rest_are_holes(server: AccountsServer, tmp_path: Path) -> None:
    account = Account()
    service = AuditFunction(environ(server, tmp_path))
    server.faults = [lambda operation, key, nth: account.deadline.come() if key == "b" else None]
    await service.handle({"all_buckets": True}, account.around(machine=False))
    report = written(tmp_path)
    assert report["stopped"] == "the deadline is near"
    assert report["counts"]["holes"] >= 5
    assert all("the deadline is near" in one["sentence"] for one in report["buckets"] if one["outcome"] == "hole")
    assert len(account.messages) == 1


async def test_wrong_event_is_one_sentence(server: AccountsServer, tmp_path: Path) -> None:
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"all_buckets": "yes"}, "all_buckets is not true or false"),
        ({"all_buckets": True, "bucket": "b-1"}, "all_buckets and bucket cannot be combined"),
        ({"all_buckets": True, "prefix": "p"}, "all_buckets and prefix cannot be combined"),
        ({"all_buckets": True, "run": "20261125T000000Z-000000"}, "all_buckets and run cannot be combined"),
        ({"all_buckets": False}, "no bucket to audit"),
        ({"run": "20261125T000000Z-000000"}, "needs a bucket"),
        ({"all_buckets": True, "start": 3}, "start is not text"),
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
    account = Account()
    answers = await asyncio.gather(*(service.handle(EVENT, account.around(request="one")) for _ in range(2)))
    check(account, tmp_path)
    (first,) = (answer for answer in answers if "estate" in answer)
    (late,) = (answer for answer in answers if "left" in answer)
    assert f"another invocation works on the start {first['estate']['estate']}" in late["left"][0]
    assert not [fault for answer in answers for fault in faults("audit-result", answer)]
    listed = [call.bucket for _, call in server.seen if call.operation == "ListObjectsV2"]
    assert {listed.count(name) for name in NAMES} == {2}, "for an estimate, and for the audit"
    done = await run_machine(lambda event: service.handle(event, account.around()), account.events[0])
    assert (done["next"], len(done["runs"])) == ("complete", len(NAMES))
    check(account, tmp_path)
    other = await service.handle(EVENT, account.around(request="two"))
    assert other["estate"]["estate"] != first["estate"]["estate"], "another event is another start"


@pytest.mark.parametrize("calls", [12, 40])
async def test_retry_after_an_invocation_that_was_killed(
    service: AuditFunction, server: AccountsServer, tmp_path: Path, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The killed one saves nothing. Its claims end with its deadline, for which the machine waits."""
    account = Account(seconds=1.0)
    monkeypatch.setattr("auditor.lambdas.start.AFTER_DEADLINE", 0.0)
    monkeypatch.setattr("auditor.lambdas.lease.AFTER_DEADLINE", 0.0)
    seen: list[str] = []
    killed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def counting(operation: str, key: str, nth: int) -> None:
        seen.append(operation)
        if len(seen) == calls:
            loop.call_soon_threadsafe(killed.set)

    def dead(*arguments: object, **more: object) -> None:
        raise AssertionError("a killed process gives nothing back")

    server.faults = [counting]
    with monkeypatch.context() as patch:
        patch.setattr(BucketLease, "give_back", dead)
        patch.setattr(FunctionStart, "save", dead)
        first = asyncio.create_task(service.handle(EVENT, account.around(request="one")))
        await asyncio.wait({first, asyncio.create_task(killed.wait())}, return_when=asyncio.FIRST_COMPLETED)
        assert not first.done()
        first.cancel()
        with suppress(asyncio.CancelledError, AssertionError, BaseExceptionGroup):
            await first
    account.lines.clear()
    await asyncio.sleep(1.1)
    answer = await service.handle(EVENT, replace(account, seconds=900.0).around(request="one"))
    assert answer["estate"]["complete"]
    check(account, tmp_path)
