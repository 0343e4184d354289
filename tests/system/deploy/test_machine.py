"""The state machine of large buckets: made where it is asked for, and with rights on nothing but its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from auditor.lambdas.claims import AFTER_DEADLINE, BETWEEN_KEEPS
from auditor.lambdas.map_step import ACTIONS
from auditor.offline.iam.actions import MACHINE, REPORTS_KEY
from deploy.errors import BuildError
from deploy.executions import wait_for
from deploy.resolving import Stack
from tests.system.deploy.checks.packaged import needs_osls, of_level, stack_of, statements
from tests.system.deploy.checks.sources import LEVELS, as_list, parameters

pytestmark = needs_osls

LONGEST = ("auditTimeout=1800", "hashingTimeout=1800", "verifyTimeout=1800")
KEY = "arn:aws:kms:us-east-1:123456789012:key/1"
RETRIED = {"Lambda.TooManyRequestsException", "Lambda.ServiceException", "Lambda.AWSLambdaException"}


def definition(stack: Stack) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stack.resources()["AuditMachine"]["Properties"]["DefinitionString"])
    return found


def tasks(machine: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, state in machine["States"].items():
        if state["Type"] == "Task":
            yield name, state
        if state["Type"] == "Map":
            yield from tasks(state["ItemProcessor"])


@pytest.mark.parametrize("level", LEVELS)
def test_it_is_made_where_it_is_asked_for(level: str) -> None:
    made = {"AuditMachine", "MachineRole", "MachineFailuresAlarm"}
    plain, divided = stack_of(level).resources(), stack_of(level, "scale=map").resources()
    assert made & plain.keys() == set()
    assert made <= divided.keys()
    for resources, machine in ((plain, ""), (divided, stack_of(level, "scale=map").arn_of("AuditMachine"))):
        variables = resources["AuditLambdaFunction"]["Properties"]["Environment"]["Variables"]
        assert variables["AUDITOR_STATE_MACHINE"] == machine
        assert variables["AUDITOR_MAP_RANGES"] == str(parameters()["default"]["mapRanges"])
        assert variables["AUDITOR_MAP_CONCURRENCY"] == "auto"
        started = statements(resources, "AuditRole").get("Machine", {"Resource": ""})["Resource"]
        assert started == machine


def test_a_number_of_ranges_at_once_is_the_functions() -> None:
    resources = stack_of("metadata", "scale=map", "mapConcurrency=33").resources()
    variables = resources["AuditLambdaFunction"]["Properties"]["Environment"]["Variables"]
    assert variables["AUDITOR_MAP_CONCURRENCY"] == "33"


def test_the_machines_role_names_its_own_function_executions_and_results_and_nothing_else() -> None:
    stack = stack_of("metadata", "scale=map", KmsKeyArn=KEY, ReportsBucketName="reports")
    resources = stack.resources()
    found = statements(resources, "MachineRole")
    assert {action for one in found.values() for action in as_list(one["Action"])} == {*MACHINE, *REPORTS_KEY}
    machine = stack.arn_of("AuditMachine")
    execution = machine.replace(":stateMachine:", ":execution:")
    assert {sid: one["Resource"] for sid, one in found.items()} == {
        "Function": stack.arn_of("AuditLambdaFunction"),
        "Children": machine,
        "Watching": [f"{execution}:*", f"{execution}/Ranges:*"],
        "Results": "arn:aws:s3:::reports/maps/*",
        "StackKey": KEY,
    }
    trust = resources["MachineRole"]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert [one["Condition"]["ArnLike"] for one in trust] == [{"aws:SourceArn": machine}]


@pytest.mark.parametrize(("partition", "region"), [("aws", "eu-west-1"), ("aws-cn", "cn-north-1")])
def test_its_steps_are_those_of_the_function_and_are_tried_again(partition: str, region: str) -> None:
    stack = Stack(of_level("metadata", "scale=map"), partition, region)
    steps = dict(tasks(definition(stack)))
    assert [one["Parameters"]["Payload"]["action"] for one in steps.values()] == list(ACTIONS)
    for name, one in steps.items():
        assert one["Resource"] == f"arn:{partition}:states:::lambda:invoke"
        assert one["Parameters"]["FunctionName"] == stack.arn_of("AuditLambdaFunction")
        retried = {error: again for again in one["Retry"] for error in again["ErrorEquals"]}
        assert retried.keys() >= RETRIED, name
        assert all(again["BackoffRate"] > 1 for error, again in retried.items() if error in RETRIED)


def test_its_map_tolerates_no_failed_range_and_writes_results_by_reference() -> None:
    """What the local machine does not do as AWS does; the rest is run there."""
    machine = definition(stack_of("metadata", "scale=map", ReportsBucketName="reports"))
    ranges = machine["States"]["Ranges"]
    assert ranges["ItemProcessor"]["ProcessorConfig"] == {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    assert not [name for name in ranges if name.startswith("Tolerated")]
    assert "Catch" not in json.dumps(machine), "a caught failure could not be redriven"
    assert ranges["ResultWriter"]["Parameters"] == {"Bucket": "reports", "Prefix": "maps"}
    assert ranges["ResultPath"] is None, "the summary does not believe the map"
    audit = ranges["ItemProcessor"]["States"]["Audit"]
    names = "$$.Execution.Name, $$.Execution.RedriveCount"
    assert audit["Parameters"]["Payload"]["attempt.$"] == f"States.Format('{{}}, redrive {{}}', {names})"
    assert ["RunTaken"] in [one["ErrorEquals"] for one in audit["Retry"]]


@pytest.mark.parametrize(("timeout", "more"), [(900, ()), (1800, LONGEST)])
def test_the_machine_outlasts_the_function_and_its_claim(timeout: int, more: tuple[str, ...]) -> None:
    stack = stack_of("fixity", "scale=map", *more)
    functions = [one for one in stack.resources().values() if one["Type"] == "AWS::Lambda::Function"]
    assert [one["Properties"]["Timeout"] for one in functions] == [timeout] * 3
    for name, one in tasks(definition(stack)):
        assert one["TimeoutSeconds"] == timeout + 60, name
        for again in (again for again in one["Retry"] if again["ErrorEquals"] == ["RunTaken"]):
            assert again["BackoffRate"] == 1
            assert again["IntervalSeconds"] * again["MaxAttempts"] == timeout + BETWEEN_KEEPS > timeout + AFTER_DEADLINE


class Executions:
    """Answers as Step Functions does, one state of the execution after the other."""

    def __init__(self, *states: dict[str, Any]) -> None:
        self.states = list(states)

    def describe_execution(self, **arguments: Any) -> dict[str, Any]:
        assert arguments.keys() == {"executionArn"}
        return self.states.pop(0)


def test_make_invoke_waits_for_the_execution_and_has_its_summary_or_the_cause_of_its_failure() -> None:
    waits: list[float] = []
    done = {"status": "SUCCEEDED", "output": json.dumps({"complete": True, "runs": [{"run": "r"}]})}
    client = Executions({"status": "RUNNING"}, {"status": "RUNNING"}, done)
    assert wait_for(["arn"], client, waits.append) == {"runs": [{"run": "r"}]}
    assert len(waits) == 2
    failed = Executions({"status": "FAILED", "error": "RunIncomplete", "cause": "A range is not complete"})
    with pytest.raises(BuildError, match="ended as FAILED: A range is not complete"):
        wait_for(["arn"], failed)
    with pytest.raises(BuildError, match="which make local-aws does not run"):
        wait_for(["arn"], Executions(), local=True)
