"""An audit that reaches its deadline continues in the next invocation until it is complete; its alerts and metrics."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from auditor.config.channels import Channels
from auditor.errors import RunError, UsageError
from auditor.lambdas.audit import AuditFunction
from auditor.lambdas.context import FunctionContext
from auditor.lambdas.handover import MOST_HOPS, next_event
from auditor.model.target import Target
from auditor.runs.reading import RunReader
from auditor.runs.stores import open_store
from tests.support.deadline import Deadline
from tests.support.servers.stub import StubServer

OBJECTS = 60


@dataclass
class Account:
    """A function's context that records invocations, alerts, events and metrics. deadline: comes when the test says
    so. poll: seconds between two attempts to claim what another invocation has. elapsed: seconds since the invocation
    began.
    """

    seconds: float = 900.0
    poll: float = 15.0
    elapsed: float = 0.0
    events: list[Mapping[str, Any]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    finished: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    deadline: Deadline = field(default_factory=Deadline)

    async def invoke(self, event: Mapping[str, Any]) -> None:
        self.events.append(json.loads(json.dumps(event)))

    async def close(self) -> None:
        """Nothing to close."""

    async def publish(self, subject: str, message: str) -> None:
        self.messages.append(f"{subject}\n{message}")

    async def put(self, source: str, kind: str, detail: Mapping[str, Any]) -> None:
        self.finished.append((kind, json.loads(json.dumps(detail))))

    def around(self, *, hands_on: bool = True, request: str | None = None) -> FunctionContext:
        return FunctionContext(
            seconds_left=self.seconds,
            successor=self if hands_on else None,
            channels=Channels(topic=self, bus=self),
            emit=lambda line: self.lines.append(json.loads(line)),
            request=request,
            stopping=self.deadline,
            poll_seconds=self.poll,
            began=time.monotonic() - self.elapsed,
        )

    def metric(self, name: str) -> float:
        return float(sum(line.get(name, 0) for line in self.lines))


@pytest.fixture
def service(stub: StubServer, tmp_path: Path) -> AuditFunction:
    for number in range(OBJECTS):
        stub.put("audited", f"{number:03}", b"x", acl="public-read" if number == 7 else "private")
    return AuditFunction(
        {
            "AUDITOR_BUCKETS": "audited",
            "AUDITOR_ENDPOINT_URL": stub.url,
            "AUDITOR_OUT": str(tmp_path),
            "AUDITOR_CONCURRENCY": "1",
            "AUDITOR_FAIL_ON": "never",
        }
    )


async def test_hops_add_up_to_one_run_and_the_last_one_writes_the_summary(
    service: AuditFunction, stub: StubServer, tmp_path: Path
) -> None:
    account = Account()
    stub.faults = [account.deadline.at("010", "020", "030", "040")]
    (first,) = (await service.handle({}, account.around()))["runs"]
    assert not first["complete"]
    run = tmp_path / "bucket=audited" / f"run={first['run']}"
    assert not (run / "summary.json").exists()
    assert not (tmp_path / "bucket=audited" / "latest.json").exists()
    hops = [event["hop"] for event in account.events]
    while account.events:
        event = account.events.pop()
        assert (event["bucket"], event["run"]) == ("audited", first["run"])
        (summary,) = (await service.handle(event, account.around()))["runs"]
        hops += [event["hop"] for event in account.events]
    assert hops == [1, 2, 3, 4]
    assert summary["complete"]
    assert summary["coverage"]["listed"] == OBJECTS
    assert summary["findings"]["high"] == 2
    assert (run / "summary.json").exists()
    with open_store(str(tmp_path)) as store:
        keys = [line.key for line in RunReader(store, "audited", first["run"]).objects()]
    assert keys == [f"{number:03}" for number in range(OBJECTS)]
    assert account.metric("RunsComplete") == 1
    assert account.metric("RunsHandedOn") == len(hops)
    assert account.metric("Objects") == OBJECTS
    assert account.lines[-1]["Target"] == "audited"
    assert account.messages == []
    ((kind, detail),) = account.finished
    assert (kind, detail["run"], detail["alert"], detail["exit_code"]) == ("S3 Audit Finished", first["run"], False, 0)
    assert detail["coverage"]["listed"] == OBJECTS


async def test_a_key_range_goes_on_as_the_range_that_it_was(
    service: AuditFunction, stub: StubServer, tmp_path: Path
) -> None:
    account = Account()
    stub.faults = [account.deadline.at("020")]
    await service.handle({"bucket": "audited", "start_after": "009", "stop_at": "049"}, account.around())
    stub.faults = []
    while account.events:
        (summary,) = (await service.handle(account.events.pop(), account.around()))["runs"]
    assert summary["complete"]
    assert summary["coverage"]["listed"] == 40
    assert "Target" not in account.lines[-1], "a part of a target says nothing of it"
    assert (summary["target"]["start_after"], summary["target"]["stop_at"]) == ("009", "049")
    assert not (tmp_path / "bucket=audited" / "latest.json").exists()


async def test_function_over_several_buckets_writes_their_index(
    service: AuditFunction, stub: StubServer, tmp_path: Path
) -> None:
    stub.world.add("second")
    service = AuditFunction({**service._environ, "AUDITOR_BUCKETS": "audited,s3://second/prefix/,gone"})
    account, index = Account(), tmp_path / "index.html"
    stub.faults = [account.deadline.at("020")]
    await service.handle({}, account.around())
    assert not index.exists(), "no run has ended yet"
    events = list(account.events)
    by_bucket = {event["bucket"]: event for event in events}
    await service.handle(by_bucket["second"], Account().around())
    assert "there is no run of it" in index.read_text()
    with pytest.raises(RunError, match="no bucket named 'gone'"):
        await service.handle(by_bucket["gone"], Account().around())
    assert "no bucket named &#39;gone&#39;" in index.read_text()
    await service.handle(by_bucket["audited"], Account().around())
    page = index.read_text()
    assert "Strangers can get at <em>1 object</em>" in page
    assert page.count('href="bucket=') == 2


async def test_a_run_that_its_own_budget_ends_is_not_handed_on(service: AuditFunction) -> None:
    account = Account(900.0)
    (summary,) = (await service.handle({"max_calls": 40}, account.around()))["runs"]
    assert not summary["complete"]
    assert account.events == []
    assert account.metric("RunsIncomplete") == 1
    assert "did not reach its end" in account.messages[0]


async def test_a_hole_is_told_with_counts_and_never_with_a_key(service: AuditFunction, stub: StubServer) -> None:
    stub.put("audited", "secret-name", b"x", deny={"acl"})
    account = Account(900.0)
    await service.handle({}, account.around())
    (message,) = account.messages
    assert "1 object could not be checked" in message
    assert "- 1 object: GetObjectAcl AccessDenied, in the bucket\n" in message
    assert "secret-name" not in message


async def test_a_failure_is_measured_told_and_raised(service: AuditFunction) -> None:
    account = Account(900.0)
    with pytest.raises(RunError, match="no bucket"):
        await service.handle({"bucket": "not-there"}, account.around())
    with pytest.raises(UsageError):
        await service.handle({"bukket": "audited"}, account.around())
    assert account.metric("RunsFailed") == 2
    assert len(account.messages) == 2


def test_past_two_hundred_hops_it_stops() -> None:
    with pytest.raises(RunError, match="200 times"):
        next_event({}, Target("audited"), MOST_HOPS, None)
