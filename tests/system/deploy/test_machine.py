"""The state machine of every deployment: its steps, its retries, and its rights, which are on nothing but its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from auditor.lambdas.event import ACTIONS, read_step
from deploy.resolving import Stack
from tests.system.deploy.checks.packaged import needs_osls, of_level, stack_of, statements
from tests.system.deploy.checks.sources import LEVELS, as_list

pytestmark = needs_osls

KEY = "arn:aws:kms:us-east-1:123456789012:key/1"
AFTER_TIMEOUT = 300
"""Seconds for which a run stays taken after the longest invocation that took it."""
RETRIED = {
    "Lambda.TooManyRequestsException": (2, 40, 300),
    "Lambda.ServiceException": (60, 8, 900),
    "Lambda.Unknown": (1, 3, None),
    "RunStopped": (1, 3, None),
    "States.Timeout": (1, 3, None),
}
"""By an error: the first wait in seconds, the number of attempts, the longest wait."""
TAKEN = {
    "event": {"bucket": "photos", "start": "20260102T030405Z-0a1b2c"},
    "pair": {"bucket": "photos", "run": "r", "range": "00000"},
    "at_once": 2,
    "fruitless": 0,
}
"""A value of each member that a step may have beside its action."""
OF_FIXITY = {"Kind", "Verify", "IsVerified", "VerifyOn", "Verified"}


def definition(stack: Stack) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stack.resources()["AuditMachine"]["Properties"]["DefinitionString"])
    return found


def states(machine: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, state in machine["States"].items():
        yield name, state
        yield from states(state.get("ItemProcessor", {"States": {}}))


def tasks(stack: Stack) -> dict[str, dict[str, Any]]:
    return {name: state for name, state in states(definition(stack)) if state["Type"] == "Task"}


@pytest.mark.parametrize("level", LEVELS)
def test_every_deployment_has_it_and_its_functions_start_it_and_not_themselves(level: str) -> None:
    stack = stack_of(level, "mapConcurrency=33")
    resources, machine = stack.resources(), stack.arn_of("AuditMachine")
    for name in ("Audit", "Verify")[: 2 if level == "fixity" else 1]:
        variables = resources[f"{name}LambdaFunction"]["Properties"]["Environment"]["Variables"]
        assert variables["AUDITOR_STATE_MACHINE"] == machine
        assert variables.get("AUDITOR_MAP_CONCURRENCY") == ("33" if name == "Audit" else None)
        allowed = statements(resources, f"{name}Role")
        assert allowed["Machine"]["Resource"] == [machine, f"{machine.replace(':stateMachine:', ':execution:')}:*"]
    metrics = {resources[f"Machine{one}Alarm"]["Properties"]["MetricName"] for one in ("Failures", "Timeouts")}
    assert metrics == {"ExecutionsFailed", "ExecutionsTimedOut"}


@pytest.mark.parametrize(("level", "out"), [("metadata", ""), ("fixity", ""), ("fixity", "/mnt/reports/audits")])
def test_its_role_names_its_functions_executions_and_lists_and_nothing_else(level: str, out: str) -> None:
    stack = stack_of(level, KmsKeyArn=KEY, ReportsBucketName="reports", ReportsPath=out)
    machine = stack.arn_of("AuditMachine")
    execution = machine.replace(":stateMachine:", ":execution:")
    functions = ["Audit", "Verify"] if level == "fixity" else ["Audit"]
    found = statements(stack.resources(), "MachineRole")
    assert {sid: (set(as_list(one["Action"])), one["Resource"]) for sid, one in found.items()} == {
        "Functions": ({"lambda:InvokeFunction"}, [stack.arn_of(f"{name}LambdaFunction") for name in functions]),
        "Children": ({"states:StartExecution"}, machine),
        "Watching": (
            {"states:DescribeExecution", "states:RedriveExecution", "states:StopExecution"},
            [f"{execution}:*", f"{execution}/Ranges:*"],
        ),
        **({} if out else {"Starts": ({"s3:GetObject"}, "arn:aws:s3:::reports/audits/starts/*")}),
        "StackKey": ({"kms:Decrypt", "kms:GenerateDataKey"}, KEY),
    }
    trust = stack.resources()["MachineRole"]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert [one["Condition"]["ArnLike"] for one in trust] == [{"aws:SourceArn": machine}]


@pytest.mark.parametrize("level", LEVELS)
def test_each_of_its_states_is_reached_and_those_of_verifications_are_at_fixity_alone(level: str) -> None:
    machine = definition(stack_of(level))
    ranges = machine["States"]["Ranges"]["ItemProcessor"]
    for one in (machine, ranges):
        follows = {one["StartAt"], *re.findall(r'"(?:Next|Default)": "(\w+)"', json.dumps(one))}
        assert one["States"].keys() <= follows
    assert follows == ranges["States"].keys()
    assert OF_FIXITY & machine["States"].keys() == (OF_FIXITY if level == "fixity" else set())
    assert machine["StartAt"] == ("Kind" if level == "fixity" else "Begin")


@pytest.mark.parametrize(("partition", "region"), [("aws", "eu-west-1"), ("aws-cn", "cn-north-1")])
def test_its_steps_are_events_that_the_functions_take(partition: str, region: str) -> None:
    stack = Stack(of_level("fixity"), partition, region)
    steps = tasks(stack)
    assert {one["Resource"] for one in steps.values()} == {f"arn:{partition}:states:::lambda:invoke"}
    verify = steps.pop("Verify")["Parameters"]
    assert verify == {"FunctionName": stack.arn_of("VerifyLambdaFunction"), "Payload.$": "$"}
    payloads = [one["Parameters"].pop("Payload") for one in steps.values()]
    assert [one["action"] for one in payloads] == list(ACTIONS)
    assert all(one["Parameters"] == {"FunctionName": stack.arn_of("AuditLambdaFunction")} for one in steps.values())
    for payload in payloads:
        given = {name.removesuffix(".$"): name for name in payload if name != "action"}
        step = read_step({"action": payload["action"]} | {name: TAKEN[name] for name in given})
        assert step.action == payload["action"]
        assert ("pair" in given) == (payload["action"] == "range")


def test_its_map_reads_the_list_in_the_bucket_or_has_it_from_the_function_and_tolerates_each_failed_range() -> None:
    """What the local machine does not do as AWS does; the rest is run there."""
    on_files = stack_of("metadata", ReportsBucketName="reports", ReportsPath="/mnt/reports/audits")
    for stack in (stack_of("metadata", ReportsBucketName="reports"), on_files):
        resources = stack.resources()
        text = resources["AuditMachine"]["Properties"]["DefinitionString"]
        assert '"ToleratedFailurePercentage":100.0,' in text, "moto takes no whole number"
        assert "Catch" not in text
        assert '"pair.$":"$$.Map.Item.Value"' in text
        ranges = json.loads(text)["States"]["Ranges"]
        assert ranges["ItemProcessor"]["ProcessorConfig"] == {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
        assert "ResultWriter" not in ranges
        assert ranges["ResultPath"] is None, "the conclusion does not believe the map"
        reader = {
            "Resource": "arn:aws:states:::s3:getObject",
            "ReaderConfig": {"InputType": "JSON"},
            "Parameters": {"Bucket": "reports", "Key.$": "$.pairs"},
        }
        found = {name: one for name, one in ranges.items() if name in ("ItemReader", "ItemsPath")}
        assert found == ({"ItemsPath": "$.pairs"} if stack is on_files else {"ItemReader": reader})


@pytest.mark.parametrize(("audit", "verify"), [(900, 900), (10, 1800)])
def test_each_task_is_tried_again_and_outlasts_its_function_and_the_claim_of_a_run(audit: int, verify: int) -> None:
    for name, one in tasks(stack_of("fixity", f"auditTimeout={audit}", f"verifyTimeout={verify}")).items():
        timeout = verify if name == "Verify" else audit
        assert one["TimeoutSeconds"] == timeout + 60, name
        again = {error: retry for retry in one["Retry"] for error in retry["ErrorEquals"]}
        for error, figures in RETRIED.items():
            found = tuple(again[error].get(key) for key in ("IntervalSeconds", "MaxAttempts", "MaxDelaySeconds"))
            assert found == figures, (name, error)
            assert again[error]["BackoffRate"] > 1
        taken = again["RunTaken"]
        assert (taken["IntervalSeconds"], taken["BackoffRate"]) == (30, 1)
        assert 0 <= 30 * taken["MaxAttempts"] - (timeout + AFTER_TIMEOUT) < 30
