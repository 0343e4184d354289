"""A start of 500 buckets of an account: the balance, the alert, and the size of each state."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from auditor.lambdas.audit import AuditFunction
from tests.support.function_account import Account
from tests.support.servers.accounts import OWN, AccountsServer
from tests.support.state_machine import run_machine

NAMES = [f"bucket-{number:03}" for number in range(500)]
DENIED = {"bucket-007", "bucket-250", "bucket-490"}
LARGE = "bucket-100"


@pytest.fixture
def server() -> Iterator[AccountsServer]:
    with AccountsServer() as made:
        made.give(OWN, *NAMES)
        for name in NAMES:
            for number in range(320 if name == LARGE else 2):
                made.put(name, f"{number:03}", b"x")
        made.refused |= DENIED
        yield made


@pytest.mark.slow
async def test_five_hundred_buckets_have_one_balance_and_one_alert(server: AccountsServer, tmp_path: Path) -> None:
    """40 are not begun at the first deadline, 3 are denied, one has 64 ranges."""
    account, ranges = Account(), set[str]()
    service = AuditFunction(
        {
            "AUDITOR_ENDPOINT_URL": server.url,
            "AUDITOR_OUT": str(tmp_path),
            "AUDITOR_ONLY": "O02",
            "AUDITOR_LEVEL": "exposure",
            "AUDITOR_RANGE_CALLS": "5",
        }
    )

    def counting(operation: str, key: str, nth: int) -> None:
        if operation == "ListObjectsV2" and len({call.bucket for _, call in server.seen if call.bucket}) >= 456:
            account.deadline.come()

    async def handle(event: Mapping[str, Any]) -> Mapping[str, Any]:
        ranges.update(f"{event['pair']['bucket']} {event['pair']['range']}" for _ in "x" if "pair" in event)
        answer = await service.handle(event, account.around())
        assert max(len(json.dumps(event)), len(json.dumps(answer))) < 256 * 1024, (
            "a state of Step Functions has no more"
        )
        return answer

    server.faults = [counting]
    answer = await handle({"all_buckets": True})
    server.faults = []
    assert (len(answer["executions"]), account.messages) == (1, [])
    state = json.loads(next((tmp_path / "starts").glob("*-state.json")).read_text())
    assert len([one for one in state["targets"] if one["phase"] == "waiting" and one["run"] is None]) >= 40
    done = await run_machine(handle, account.events[0])
    report = json.loads((tmp_path / f"account={OWN}" / "estate.json").read_text())
    assert report["line"] == "500 buckets in 1 account = 497 audited + 0 excluded + 3 holes"
    assert {one["bucket"] for one in report["buckets"] if one["outcome"] == "hole"} == DENIED
    assert report["coverage"]["audited"] == 496 * 2 + 320
    assert len([one for one in ranges if one.startswith(LARGE)]) == 64
    assert (done["next"], len(account.messages), account.metric("RunsFailed")) == ("incomplete", 1, 3)
    assert len(account.finished) == 497
