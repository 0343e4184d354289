"""An event for every bucket of the account: each is audited, excluded or a hole, over as many hops as it takes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from auditor.errors import UsageError
from auditor.lambdas.audit import AuditFunction
from auditor.lambdas.event import read_event
from auditor.lambdas.handover import MOST_HOPS
from tests.lambdas.test_event import SCHEDULE
from tests.lambdas.test_handover import Account
from tests.support.schemas import faults
from tests.support.servers.accounts import OWN, AccountsServer

NAMES = [f"bucket-{number:02}" for number in range(12)]


@pytest.fixture
def server() -> Iterator[AccountsServer]:
    with AccountsServer() as made:
        made.give(OWN, *NAMES)
        for name in NAMES:
            for key in ("a", "b", "c"):
                made.put(name, key, b"x")
        made.put("bucket-03", "open", b"x", acl="public-read")
        yield made


def environ(server: AccountsServer, out: Path, **more: str) -> Mapping[str, str]:
    return {
        "AUDITOR_ENDPOINT_URL": server.url,
        "AUDITOR_OUT": str(out),
        "AUDITOR_CONCURRENCY": "1",
        "AUDITOR_ONLY": "O02",
        **more,
    }


def number_of_runs(out: Path) -> int:
    return len(list(out.glob("bucket=*/run=*/summary.json")))


def written(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / f"account={OWN}" / "estate.json").read_text())
    counts = found["counts"]
    assert not faults("audit-result", {"runs": [], "estate": found})
    assert counts["buckets"] == counts["audited"] + counts["excluded"] + counts["holes"] == len(found["buckets"])
    return found


async def test_every_bucket_in_one_invocation(server: AccountsServer, tmp_path: Path) -> None:
    account = Account()
    server.refused.add("bucket-05")
    answer = await AuditFunction(environ(server, tmp_path)).handle({"all_buckets": True}, account.around())
    report = written(tmp_path)
    assert answer == {"runs": [], "estate": report}
    assert report["line"] == "12 buckets in 1 account = 11 audited + 0 excluded + 1 hole"
    (hole,) = (one for one in report["buckets"] if one["outcome"] == "hole")
    assert (hole["bucket"], "s3:ListBucket" in hole["sentence"]) == ("bucket-05", True)
    assert {call.headers.get("x-amz-expected-bucket-owner") for _, call in server.seen if call.bucket} == {OWN}
    (message,) = account.messages
    assert message.startswith(f"S3 audit: {report['line']}")
    assert "The audit of s3://bucket-03" in message
    assert len(account.finished) == 11
    assert account.metric("Objects") == 34
    assert account.metric("RunsIncomplete") == 1
    assert account.metric("RunsFailed") == 1
    assert len(account.lines) == 1
    assert report["line"] in (tmp_path / f"account={OWN}" / "index.html").read_text()


async def test_schedule_means_every_bucket_where_the_setting_is_a_star(server: AccountsServer, tmp_path: Path) -> None:
    account = Account()
    service = AuditFunction(environ(server, tmp_path, AUDITOR_BUCKETS="*"))
    answer = await service.handle(SCHEDULE, account.around())
    assert answer["estate"]["counts"]["audited"] == 12
    (one,) = (await service.handle({"bucket": "bucket-01"}, account.around()))["runs"]
    assert one["target"]["bucket"] == "bucket-01"


async def test_hops_add_up_to_one_report(server: AccountsServer, tmp_path: Path) -> None:
    """At each deadline the buckets that have ended stay ended, and the interrupted ones go on in their folders."""
    account = Account()
    service = AuditFunction(environ(server, tmp_path))
    server.refused.add("bucket-00")
    seen: list[str] = []

    def stopping(operation: str, key: str, nth: int) -> None:
        seen.append(operation)
        if len(seen) % 60 == 59:
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
    assert report["line"] == "12 buckets in 1 account = 11 audited + 0 excluded + 1 hole"
    assert report["coverage"]["audited"] == 34
    assert report["verdicts"]["exposed"] == 1
    assert number_of_runs(tmp_path) == 11, "each bucket has one run"
    assert len([call for _, call in server.seen if call.bucket == "bucket-00" and call.operation == "HeadBucket"]) == 1
    assert len(account.messages) == 1
    assert account.metric("RunsHandedOn") == len(hops)
    assert account.metric("RunsIncomplete") == 1
    assert len(account.finished) == 11


async def test_without_a_next_invocation_the_rest_are_holes(server: AccountsServer, tmp_path: Path) -> None:
    account = Account()
    service = AuditFunction(environ(server, tmp_path))
    server.faults = [lambda operation, key, nth: account.deadline.come() if key == "b" else None]
    await service.handle({"all_buckets": True}, account.around(hands_on=False))
    report = written(tmp_path)
    assert report["stopped"] == "the deadline is near"
    assert report["counts"]["holes"] >= 8
    assert all("the deadline is near" in one["sentence"] for one in report["buckets"] if one["outcome"] == "hole")
    assert len(account.messages) == 1


async def test_start_that_is_handed_on_too_often_ends(server: AccountsServer, tmp_path: Path) -> None:
    account = Account()
    server.faults = [lambda operation, key, nth: account.deadline.come() if key == "b" else None]
    event = {"all_buckets": True, "run": "20261125T000000Z-000000", "hop": MOST_HOPS}
    await AuditFunction(environ(server, tmp_path)).handle(event, account.around())
    assert account.events == []
    assert f"was handed over {MOST_HOPS} times" in written(tmp_path)["stopped"]
    assert len(account.messages) == 1


async def test_listing_that_is_denied_is_a_hole(server: AccountsServer, tmp_path: Path) -> None:
    account = Account()
    server.unlisted.add(OWN)
    answer = await AuditFunction(environ(server, tmp_path)).handle({"all_buckets": True}, account.around())
    assert answer["estate"]["exit_code"] == 4
    assert "s3:ListAllMyBuckets" in answer["estate"]["accounts"][0]["hole"]
    assert len(account.messages) == 1
    assert account.metric("RunsFailed") == 1


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
