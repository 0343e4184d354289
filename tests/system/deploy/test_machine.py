"""The state machine of large buckets: made where it is asked for, and with rights on nothing but its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor.aws.iam.actions import MACHINE, REPORTS_KEY
from auditor.lambdas.claims import AFTER_DEADLINE, BETWEEN_KEEPS
from auditor.lambdas.map_step import ACTIONS
from auditor.lambdas.scale import Scale
from deploy.errors import BuildError
from deploy.executions import wait_for
from deploy.resolving import Stack
from tests.system.deploy.checks.packaged import needs_osls, of_level, refusal
from tests.system.deploy.checks.sources import LEVELS, as_list, parameters, read, statements

MAP = ("--param", "scale=map")
LONGEST = (*MAP, *(part for name in ("audit", "hashing", "verify") for part in ("--param", f"{name}Timeout=1800")))
KEY = "arn:aws:kms:eu-west-1:123456789012:key/1"
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


@needs_osls
@pytest.mark.parametrize("level", LEVELS)
def test_it_is_made_where_it_is_asked_for(level: str) -> None:
    made = {"AuditMachine", "MachineRole", "MachineFailuresAlarm"}
    plain, divided = Stack(of_level(level)).resources(), Stack(of_level(level, *MAP)).resources()
    assert made & plain.keys() == set()
    assert made <= divided.keys()
    for resources, machine in ((plain, ""), (divided, Stack(of_level(level, *MAP)).arn_of("AuditMachine"))):
        function = resources["AuditLambdaFunction"]["Properties"]["Environment"]["Variables"]
        assert Scale.of({name: str(value) for name, value in function.items()}) == Scale(
            machine=machine,
            ranges=parameters()["default"]["mapRanges"],
            at_once=None,
        )
        started = [one["Resource"] for one in statements(resources["AuditRole"]) if one["Sid"] == "Machine"]
        assert started == ([machine] if machine else [])


def test_the_machines_role_allows_what_step_functions_does_and_nothing_else() -> None:
    role = read("deploy/scale/map.yml")["Resources"]["MachineRole"]
    found = {action for one in statements(role) for action in as_list(one["Action"])}
    assert found == {*MACHINE, *REPORTS_KEY}


@needs_osls
def test_the_machines_role_names_its_own_function_executions_and_results() -> None:
    stack = Stack(of_level("metadata", *MAP), parameters={"KmsKeyArn": KEY, "ReportsBucketName": "reports"})
    found = {one["Sid"]: one["Resource"] for one in statements(stack.resources()["MachineRole"])}
    machine = stack.arn_of("AuditMachine")
    execution = machine.replace(":stateMachine:", ":execution:")
    assert found == {
        "Function": stack.arn_of("AuditLambdaFunction"),
        "Children": machine,
        "Watching": [f"{execution}:*", f"{execution}/Ranges:*"],
        "Results": "arn:aws:s3:::reports/maps/*",
        "StackKey": KEY,
    }
    trust = stack.resources()["MachineRole"]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert [one["Condition"]["ArnLike"] for one in trust] == [{"aws:SourceArn": machine}]


@needs_osls
@pytest.mark.parametrize("level", LEVELS)
def test_its_history_is_under_the_key_that_is_given(level: str) -> None:
    made = of_level(level, *MAP)
    plain, keyed = Stack(made).resources(), Stack(made, parameters={"KmsKeyArn": KEY}).resources()
    assert "EncryptionConfiguration" not in plain["AuditMachine"]["Properties"]
    assert keyed["AuditMachine"]["Properties"]["EncryptionConfiguration"] == {
        "Type": "CUSTOMER_MANAGED_KMS_KEY",
        "KmsKeyId": KEY,
        "KmsDataKeyReusePeriodSeconds": 900,
    }
    (on_key,) = [one for one in statements(keyed["MachineRole"]) if one["Sid"] == "StackKey"]
    assert set(as_list(on_key["Action"])) == {"kms:Decrypt", "kms:GenerateDataKey"}


@needs_osls
@pytest.mark.parametrize(("partition", "region"), [("aws", "eu-west-1"), ("aws-cn", "cn-north-1")])
def test_its_steps_are_those_of_the_function_and_are_tried_again(partition: str, region: str) -> None:
    stack = Stack(of_level("metadata", *MAP), partition, region)
    machine = definition(stack)
    steps = dict(tasks(machine))
    assert [one["Parameters"]["Payload"]["action"] for one in steps.values()] == list(ACTIONS)
    for name, one in steps.items():
        assert one["Resource"] == f"arn:{partition}:states:::lambda:invoke"
        assert one["Parameters"]["FunctionName"] == stack.arn_of("AuditLambdaFunction")
        assert one["TimeoutSeconds"] == 960, "a task that gave up must not leave a function at work"
        retried = {error: again for again in one["Retry"] for error in again["ErrorEquals"]}
        assert retried.keys() >= RETRIED, name
        assert all(again["BackoffRate"] > 1 for error, again in retried.items() if error in RETRIED)


@needs_osls
def test_its_map_tolerates_no_failed_range_and_writes_results_by_reference() -> None:
    machine = definition(Stack(of_level("metadata", *MAP), parameters={"ReportsBucketName": "reports"}))
    ranges = machine["States"]["Ranges"]
    assert ranges["ItemProcessor"]["ProcessorConfig"] == {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    assert not [name for name in ranges if name.startswith("Tolerated")]
    assert "Catch" not in json.dumps(machine), "a caught failure could not be redriven"
    assert ranges["MaxConcurrencyPath"] == "$.atOnce"
    assert ranges["ItemSelector"]["range.$"] == "$$.Map.Item.Value"
    assert ranges["ResultWriter"]["Parameters"] == {"Bucket": "reports", "Prefix": "maps"}
    assert ranges["ResultPath"] is None, "the summary does not believe the map"
    again, complete = machine["States"]["IsRunComplete"]["Choices"]
    assert (again["Variable"], again["Next"]) == ("$.summed.again", "Summarize")
    assert (complete["Variable"], complete["Next"]) == ("$.summed.complete", "Complete")
    assert machine["States"]["IsRunComplete"]["Default"] == "Incomplete"
    children = ranges["ItemProcessor"]["States"]
    (choice,) = children["IsRangeComplete"]["Choices"]
    assert (choice["Variable"], children["IsRangeComplete"]["Default"]) == ("$.done.complete", "Audit")


@needs_osls
@pytest.mark.parametrize(("timeout", "more"), [(900, MAP), (1800, LONGEST)])
def test_the_machine_outlasts_the_function_and_its_claim(timeout: int, more: tuple[str, ...]) -> None:
    stack = Stack(of_level("fixity", *more))
    functions = [one for one in stack.resources().values() if one["Type"] == "AWS::Lambda::Function"]
    assert [one["Properties"]["Timeout"] for one in functions] == [timeout] * 3
    for name, one in tasks(definition(stack)):
        assert one["TimeoutSeconds"] == timeout + 60, name
        for again in (again for again in one["Retry"] if again["ErrorEquals"] == ["RunTaken"]):
            assert again["BackoffRate"] == 1
            assert again["IntervalSeconds"] * again["MaxAttempts"] == timeout + BETWEEN_KEEPS > timeout + AFTER_DEADLINE


@needs_osls
def test_a_range_tells_its_redrives_and_asks_again_for_a_run_that_is_taken() -> None:
    machine = definition(Stack(of_level("metadata", *MAP), parameters={"ReportsBucketName": "reports"}))
    audit = machine["States"]["Ranges"]["ItemProcessor"]["States"]["Audit"]
    names = "$$.Execution.Name, $$.Execution.RedriveCount"
    assert audit["Parameters"]["Payload"]["attempt.$"] == f"States.Format('{{}}, redrive {{}}', {names})"
    assert ["RunTaken"] in [one["ErrorEquals"] for one in audit["Retry"]]


@needs_osls
def test_a_number_of_ranges_at_once_wins_over_what_max_rate_takes() -> None:
    for given, at_once in (("auto", None), ("33", 33)):
        resources = Stack(of_level("metadata", *MAP, "--param", f"mapConcurrency={given}")).resources()
        variables = resources["AuditLambdaFunction"]["Properties"]["Environment"]["Variables"]
        assert Scale.of({name: str(value) for name, value in variables.items()}).at_once == at_once


@needs_osls
@pytest.mark.parametrize(
    ("given", "word"),
    [
        ("scale=maps", "give function or map"),
        ("mapRanges=0", "give a whole number from 1 to 10000"),
        ("mapConcurrency=1001", "give auto, or a whole number from 1 to 1000"),
        ("mapConcurrency=many", "give auto, or a whole number from 1 to 1000"),
    ],
)
def test_a_wrong_scale_is_refused_in_a_sentence(tmp_path: Path, given: str, word: str) -> None:
    assert word in refusal(tmp_path, "--stage", "prod", "--param", "buckets=photos", "--param", given)


class Executions:
    """Answers as Step Functions does, one state of the execution after the other."""

    def __init__(self, *states: dict[str, Any]) -> None:
        self.states = list(states)

    def describe_execution(self, **arguments: Any) -> dict[str, Any]:
        assert arguments.keys() == {"executionArn"}
        return self.states.pop(0)


def test_make_invoke_waits_for_the_execution_and_has_its_summary() -> None:
    waits: list[float] = []
    done = {"status": "SUCCEEDED", "output": json.dumps({"complete": True, "runs": [{"run": "r"}]})}
    client = Executions({"status": "RUNNING"}, {"status": "RUNNING"}, done)
    assert wait_for(["arn"], client, waits.append) == {"runs": [{"run": "r"}]}
    assert len(waits) == 2


def test_make_invoke_fails_with_the_cause_of_the_execution() -> None:
    client = Executions({"status": "FAILED", "error": "RunIncomplete", "cause": "A range is not complete"})
    with pytest.raises(BuildError, match="ended as FAILED: A range is not complete"):
        wait_for(["arn"], client)


def test_make_invoke_does_not_wait_for_a_server_that_runs_no_machine() -> None:
    with pytest.raises(BuildError, match="which make local-aws does not run"):
        wait_for(["arn"], Executions(), local=True)
