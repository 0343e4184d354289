"""Findings are sent in batches, renewed, and archived only where the run looked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from auditor.errors import RunError, UsageError
from auditor.model.access import Verdict
from auditor.model.finding import Judgement, RuleUndecided
from auditor.offline.formats.asff import HubAccount, LookedAt
from auditor.offline.security_hub import BATCH_BYTES, SentFindings, batches, open_security_hub
from tests.support.samples.reports import (
    denied,
    finding,
    judged,
    rollups_of,
    sample_file,
    sample_summary,
    tally_of,
    target,
)
from tests.support.servers.security_hub import HubWorld, security_hub
from tests.support.servers.world import ACCOUNT

FIRST, SECOND = "20260102T030405Z-0a1b2c", "20260103T030405Z-0a1b2c"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubWorld]:
    with security_hub() as world:
        monkeypatch.setenv("AWS_ENDPOINT_URL", world.url)
        yield world


def send(
    *judgements: Judgement, run: str = FIRST, account: str | None = None, asked: bool = True, **changes: Any
) -> SentFindings:
    summary = sample_summary(tally_of(*judgements), run=run, **changes)
    rollups = replace(rollups_of(*judgements), run=run, target=summary.target, complete=summary.complete)
    rules = frozenset({"O02", "E01"}) - {one.rule for one in summary.rules_undecided}
    looked = replace(LookedAt.by(summary, rollups, sample_file()), rules=rules, asked=asked)

    async def sent() -> SentFindings:
        async with open_security_hub(None, None, account) as opened:
            return await opened.send(summary, rollups, looked)

    return asyncio.run(sent())


def exposed(key: str, rule: str = "O02") -> Judgement:
    return judged(key, finding(key, rule), verdict=Verdict.EXPOSED)


def test_the_same_run_twice_is_the_same_findings(hub: HubWorld) -> None:
    many = [exposed(f"s/{at}") for at in range(7)]
    first = send(*many)
    known = hub.state()
    assert (first.sent, first.archived, first.kept, first.failed) == (3, 0, 0, ())
    assert first.hub == HubAccount(ACCOUNT, "us-east-1")
    assert send(*many).sent == 3
    assert hub.state() == known
    assert hub.state("ARCHIVED") == set()


def test_what_is_over_is_archived_and_what_stays_keeps_its_begin(hub: HubWorld) -> None:
    send(exposed("s/a"), exposed("s/b", "E01"), denied("v/x"))
    before = {one["Id"]: one["CreatedAt"] for one in hub.findings.values()}
    done = send(exposed("s/a"), denied("v/x"), judged("s/b"), run=SECOND)
    assert (done.archived, done.kept) == (1, 0)
    (over,) = (one for one in hub.findings.values() if one["RecordState"] == "ARCHIVED")
    assert over["GeneratorId"] == "s3-auditor/rule/E01"
    assert over["UpdatedAt"] == "2026-01-03T03:04:05Z"
    assert "Workflow" in over
    (unread,) = hub.of_kind("undecided")
    assert unread["UpdatedAt"] == "2026-01-03T03:04:05Z"
    assert unread["CreatedAt"] == before[unread["Id"]]


def test_another_target_and_another_product_stay_as_they_are(hub: HubWorld) -> None:
    send(exposed("s/a"))
    send(exposed("s/a"), target=target(prefix="s/"))
    other = next(iter(hub.findings.values()))
    hub.findings["other"] = {**other, "Id": "other"}
    assert send(judged("s/a"), run=SECOND).archived == 2
    assert len(hub.state()) == 3 + 1 + 1


def test_nothing_is_archived_that_was_not_looked_at_again(hub: HubWorld) -> None:
    later: list[Judgement]
    for name, later, complete in (
        ("not complete", [judged("s/a")], False),
        ("the object itself", [denied("s/a")], True),
        ("objects below", [denied(f"s/deep/{at}") for at in range(9)], True),
        ("verdict unknown", [judged("s/a", verdict=Verdict.UNKNOWN)], True),
    ):
        hub.findings.clear()
        send(*(exposed(f"s/{at}") for at in "abcdef"))
        done = send(*later, run=SECOND, complete=complete)
        assert (done.archived, done.kept) == (0, 2), name
        assert hub.state("ARCHIVED") == set(), name


def test_a_run_that_asks_less_leaves_unread_objects_as_they_are(hub: HubWorld) -> None:
    send(denied("v/x"))
    states = []
    for asked in (False, True):
        send(judged("v/x"), run=SECOND, asked=asked)
        states += [one["RecordState"] for one in hub.findings.values() if one["GeneratorId"].endswith("/undecided")]
    assert states == ["ACTIVE", "ARCHIVED"]


def test_a_rule_that_was_not_judged_keeps_its_findings(hub: HubWorld) -> None:
    send(exposed("s/a"), exposed("s/b", "K01"))
    rule = RuleUndecided("E01", "GetBucketEncryption", "AccessDenied")
    send(exposed("s/a", "E01"), run=SECOND)
    active = {one["GeneratorId"] for one in hub.findings.values() if one["RecordState"] == "ACTIVE"}
    assert "s3-auditor/rule/K01" in active
    done = send(exposed("s/a"), run="20260104T030405Z-0a1b2c", rules_undecided=(rule,))
    assert done.kept == 2
    assert send(exposed("s/a"), run="20260105T030405Z-0a1b2c").archived == 2


def test_an_older_run_does_not_undo_a_newer_one(hub: HubWorld) -> None:
    send(exposed("s/a"), run=SECOND)
    with pytest.raises(UsageError, match=SECOND):
        send(judged("s/a"), run=FIRST)
    assert hub.state("ARCHIVED") == set()


def test_batches_of_a_hundred_and_pages_of_present_ones(hub: HubWorld) -> None:
    many = [exposed(f"s/{at:03}", f"X{at:03}") for at in range(150)]  # 150 groups of findings, and one of verdicts
    hub.page = 70
    done = send(*many)
    sizes = [number for name, number in hub.calls if name == "BatchImportFindings"]
    assert done.sent == 152
    assert sizes == [100, 52]
    again = send(*many, run=SECOND)
    assert (again.sent, again.archived) == (152, 0)
    assert [number for name, number in hub.calls if name == "GetFindings"] == [0, 70, 70, 12]


def test_refused_findings_are_named_and_the_others_taken(hub: HubWorld) -> None:
    hub.refuse["/coverage"], hub.throttle = "InvalidInput", 1
    done = send(exposed("s/a"))
    assert done.sent == 2
    assert [code for _, code in done.failed] == ["InvalidInput"]
    assert done.failed[0][0].endswith("/coverage")


def test_a_hub_that_cannot_be_used_is_one_sentence(hub: HubWorld) -> None:
    hub.denied = True
    with pytest.raises(RunError, match="allow securityhub:BatchImportFindings and securityhub:GetFindings"):
        send(exposed("s/a"))
    hub.disabled = True
    with pytest.raises(RunError, match=f"account {ACCOUNT} in us-east-1 is not enabled"):
        send(exposed("s/a"))
    with pytest.raises(UsageError, match="credentials belong to"):
        send(exposed("s/a"), account="999999999999")


def test_a_batch_stays_below_the_limit_of_bytes() -> None:
    found = [{"Id": str(at), "Description": "x" * 200_000} for at in range(80)]
    made = list(batches(found))
    assert [one for batch in made for one in batch] == found
    assert all(len(json.dumps(batch)) <= BATCH_BYTES for batch in made)
    assert len(made) == 3
    assert list(batches([])) == []
