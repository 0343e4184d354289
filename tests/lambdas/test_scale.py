"""Large targets are left to the state machine: one start, one execution, and a run that goes on as it was begun."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from auditor.errors import RunError, UsageError
from auditor.lambdas.audit import AuditFunction
from auditor.lambdas.event import read_event
from auditor.lambdas.handover import MOST_FRUITLESS
from auditor.lambdas.scale import Scale, machine_for
from auditor.runs.reading import RunReader
from auditor.runs.stores import open_store
from tests.lambdas.test_handover import Account
from tests.support.servers.stub import StubServer

OBJECTS = 30
SLOW = 0.001
"""Calls a second at which even these objects take hours."""
NIGHT = {"source": "aws.scheduler", "detail-type": "Scheduled Event", "time": "2026-01-02T03:04:05Z"}


@dataclass
class Machines:
    """A state machine on moto's server, which is started and does nothing."""

    client: Any
    arn: str

    def inputs(self) -> list[dict[str, Any]]:
        found = self.client.list_executions(stateMachineArn=self.arn)["executions"]
        return [json.loads(self.client.describe_execution(executionArn=one["executionArn"])["input"]) for one in found]


@pytest.fixture
def machines(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    monkeypatch.setenv("AWS_ENDPOINT_URL_SFN", moto_url)
    client = boto3.Session("testing", "testing", region_name="us-east-1").client("stepfunctions", endpoint_url=moto_url)
    made = client.create_state_machine(name="audit", definition="{}", roleArn="arn:aws:iam::123456789012:role/machine")
    yield Machines(client, made["stateMachineArn"])
    client.delete_state_machine(stateMachineArn=made["stateMachineArn"])
    client.close()


@pytest.fixture
def environ(stub: StubServer, tmp_path: Path, machines: Machines) -> dict[str, str]:
    for number in range(OBJECTS):
        stub.put("audited", f"{number:03}", b"x")
    return {
        "AUDITOR_BUCKETS": "audited",
        "AUDITOR_ENDPOINT_URL": stub.url,
        "AUDITOR_OUT": str(tmp_path),
        "AUDITOR_STATE_MACHINE": machines.arn,
        "AUDITOR_MAP_RANGES": "3",
        "AUDITOR_MAX_RATE": str(SLOW),
    }


def running(out: Path) -> dict[str, Any]:
    return dict(json.loads((out / "bucket=audited" / "running.json").read_text()))


async def test_a_first_audit_of_hours_is_left_to_the_machine(
    environ: dict[str, str], stub: StubServer, machines: Machines, tmp_path: Path
) -> None:
    account = Account()
    answer = await AuditFunction(environ).handle(NIGHT, account.around())
    assert (answer["runs"], len(answer["executions"])) == ([], 1)
    await AuditFunction(environ).handle(NIGHT, Account().around())  # it comes twice, and starts one execution
    (given,) = machines.inputs()
    run = given.pop("run")
    assert given == {"bucket": "audited", "prefix": "", "versions": False, "hop": 1}
    assert running(tmp_path)["holder"]["run"] == run
    assert (stub.count("GetObjectAcl"), stub.count("HeadObject")) == (0, 0)
    assert account.events == []
    assert account.metric("RunsHandedOn") == 1


async def test_what_the_last_run_took_decides_and_the_bucket_is_not_listed_for_it(
    environ: dict[str, str], stub: StubServer, machines: Machines
) -> None:
    fast = {**environ, "AUDITOR_MAX_RATE": "unlimited"}
    (first,) = (await AuditFunction(fast).handle({}, Account().around()))["runs"]
    assert first["complete"]
    assert machines.inputs() == []
    stub.forget()
    answer = await AuditFunction(environ).handle({}, Account().around())
    assert len(answer["executions"]) == 1
    assert stub.requests == []


async def test_what_cannot_be_divided_is_audited_alone(environ: dict[str, str], tmp_path: Path) -> None:
    scale = Scale(machine=environ["AUDITOR_STATE_MACHINE"], ranges=3)
    events: tuple[dict[str, Any], ...] = ({}, {"max_calls": 50}, {"start_after": "5"}, {"stop_at": "5"})
    for event in events:
        invocation = read_event({"bucket": "audited", **event}, environ)
        with open_store(str(tmp_path)) as store:
            run, target = "20260102T030405Z-0a1b2c", invocation.targets[0]
            machine = await machine_for(scale, invocation, target, store, run, begun=False)
        assert (machine is None) == bool(event), event


async def test_a_divided_run_that_did_not_end_goes_on_divided_whatever_the_estimate_says(
    environ: dict[str, str], machines: Machines
) -> None:
    fast = {**environ, "AUDITOR_MAX_RATE": "unlimited"}
    service = AuditFunction(fast)
    plan = await service.handle({"action": "plan", "event": {"bucket": "audited"}}, Account().around())
    run = plan["event"]["run"]
    answer = await service.handle({"bucket": "audited", "run": run}, Account().around())
    assert len(answer["executions"]) == 1
    assert [one["run"] for one in machines.inputs()] == [run]


async def test_a_divided_run_goes_on_in_one_function_if_there_is_no_machine(
    environ: dict[str, str], stub: StubServer, tmp_path: Path
) -> None:
    alone = {**environ, "AUDITOR_MAX_RATE": "unlimited", "AUDITOR_STATE_MACHINE": "", "AUDITOR_CONCURRENCY": "1"}
    service, account = AuditFunction(alone), Account()
    plan = await service.handle({"action": "plan", "event": {"bucket": "audited"}}, account.around())
    stub.faults = [account.deadline.at(*(f"{number:03}" for number in range(2, OBJECTS, 5)))]
    account.events.append({"bucket": "audited", "run": plan["event"]["run"]})
    while account.events:
        (summary,) = (await service.handle(account.events.pop(), account.around()))["runs"]
    assert account.metric("RunsHandedOn") > MOST_FRUITLESS
    assert (summary["run"], summary["complete"]) == (plan["event"]["run"], True)
    assert summary["coverage"]["listed"] == OBJECTS
    with open_store(str(tmp_path)) as store:
        run = RunReader(store, "audited", summary["run"])
        assert [line.key for line in run.objects()] == [f"{number:03}" for number in range(OBJECTS)]
        assert len(run.by_part()) >= len(plan["ranges"]) == 3


async def test_a_machine_that_is_not_there_is_told_and_the_bucket_is_free_again(
    environ: dict[str, str], machines: Machines, tmp_path: Path
) -> None:
    account = Account()
    gone = {**environ, "AUDITOR_STATE_MACHINE": f"{machines.arn}-gone"}
    with pytest.raises(RunError, match=r"is not handed on: the state machine .*-gone .*deploy it again"):
        await AuditFunction(gone).handle({}, account.around())
    assert running(tmp_path)["holder"] is None
    assert len(account.messages) == 1


async def test_the_deployments_numbers_are_read_or_refused(stub: StubServer, tmp_path: Path) -> None:
    wrong = [("RANGES", one, "1 to 10,000") for one in ("0", "-1", "1.5", "10001", "x", "\u0661")]
    wrong += [("CONCURRENCY", one, "1 to 1,000") for one in ("0", "1001", "Auto", "2 ")]
    for name, value, numbers in wrong:
        environ = {"AUDITOR_OUT": str(tmp_path), f"AUDITOR_MAP_{name}": value}
        with pytest.raises(UsageError, match=rf"AUDITOR_MAP_{name} is .*give a whole number from {numbers}"):
            await AuditFunction(environ).handle({"bucket": "audited"}, Account().around())
