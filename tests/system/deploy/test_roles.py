"""The roles: exactly the actions that the code declares, at each level, and nothing written where it is audited."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Any

import pytest

from auditor.aws.client import ThreadedClient
from auditor.aws.iam.actions import QUEUE_CALLS, REPORTS_KEY, STORE_READS
from auditor.aws.sqs import Outgoing, SqsQueue
from tests.system.deploy.checks.packaged import needs_osls, of_level
from tests.system.deploy.checks.roles import allowed
from tests.system.deploy.checks.sources import (
    LEVELS,
    actions,
    as_list,
    functions_of_level,
    resources_of_level,
    statements,
)

WRITES = re.compile(r":(Put|Delete|Create|Update|Restore|Replicate|Bypass|Abort)")
AUDITED = ("${self:custom.checked.bucketArns}", "${self:custom.checked.objectArns}")


def roles(level: str) -> dict[str, dict[str, Any]]:
    return {name: one for name, one in resources_of_level(level).items() if one["Type"] == "AWS::IAM::Role"}


@pytest.mark.parametrize("level", LEVELS)
def test_the_audit_role_allows_what_the_code_declares_and_nothing_else(level: str) -> None:
    assert actions(roles(level)["AuditRole"]) == allowed("audit", level, divides=False)


def test_the_hashing_role_allows_what_the_code_declares_and_nothing_else() -> None:
    assert actions(roles("fixity")["HashingRole"]) == allowed("hashing")


def test_the_verifying_role_allows_what_the_code_declares_and_nothing_else() -> None:
    assert actions(roles("fixity")["VerifyRole"]) == allowed("verify")


def test_each_schedule_starts_its_own_function_alone() -> None:
    made = roles("fixity")
    assert actions(made["VerifyScheduleRole"]) == actions(made["ScheduleRole"])
    for name, function in (("ScheduleRole", "Audit"), ("VerifyScheduleRole", "Verify")):
        started = [one["Resource"] for one in statements(made[name]) if one["Sid"] == "Start"]
        assert started == [{"Fn::GetAtt": [f"{function}LambdaFunction", "Arn"]}]


def test_the_schedule_starts_one_function_and_puts_away_what_did_not_start() -> None:
    assert actions(roles("exposure")["ScheduleRole"]) == {"lambda:InvokeFunction", "sqs:SendMessage", *REPORTS_KEY}


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_has_a_role_for_each_function_and_one_for_each_schedule_and_the_machine(level: str) -> None:
    used = {function["role"]["Fn::Sub"] for function in functions_of_level(level).values()}
    schedules = {"${ScheduleRole.Arn}", *(["${VerifyScheduleRole.Arn}"] if level == "fixity" else [])}
    assert {f"${{{name}.Arn}}" for name in roles(level)} == used | schedules | {"${MachineRole.Arn}"}


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_in_the_audited_buckets_can_be_written(level: str) -> None:
    for name, role in roles(level).items():
        for statement in statements(role):
            resources = as_list(statement.get("Resource", []))
            if statement["Effect"] == "Allow" and any(one in AUDITED or one == "*" for one in resources):
                written = [action for action in as_list(statement["Action"]) if WRITES.search(action)]
                assert [action for action in written if not action.startswith("ec2:")] == [], name


@pytest.mark.parametrize("level", LEVELS)
def test_no_action_is_a_pattern_and_no_object_is_named_by_one_alone(level: str) -> None:
    for name, role in roles(level).items():
        for statement in statements(role):
            assert not [action for action in as_list(statement["Action"]) if "*" in action], name
            if statement.get("Resource") == "*":
                assert statement["Sid"] in {"Account", "Network"}, f"{name} {statement['Sid']}"


CONTENTS = ("s3:GetObject", "s3:GetObjectVersion", "kms:Decrypt")


@needs_osls
def test_at_exposure_the_packaged_role_allows_neither_reading_an_object_nor_decrypting() -> None:
    packaged = of_level("exposure")["Resources"]["AuditRole"]
    assert "ManagedPolicyArns" not in packaged["Properties"]
    for action in CONTENTS:
        assert [pattern for pattern in actions(packaged) if fnmatchcase(action, pattern)] == []
    assert actions(packaged, "Deny") == set(CONTENTS)


@needs_osls
@pytest.mark.parametrize("level", ["metadata", "fixity"])
def test_at_the_other_levels_the_packaged_role_allows_what_head_takes(level: str) -> None:
    """So that the test above would find it."""
    packaged = of_level(level)["Resources"]["AuditRole"]
    assert set(CONTENTS) <= actions(packaged)
    assert actions(packaged, "Deny") == set()


@pytest.mark.parametrize("level", LEVELS)
def test_the_made_reports_bucket_lets_the_audit_read_its_run_folders_and_nobody_else(level: str) -> None:
    policy = resources_of_level(level)["ReportsBucketPolicy"]["Properties"]["PolicyDocument"]
    (allowed,) = [one for one in policy["Statement"] if one["Effect"] == "Allow"]
    assert allowed["Principal"] == {"AWS": {"Fn::GetAtt": ["AuditRole", "Arn"]}}
    assert (allowed["Action"],) == STORE_READS
    assert allowed["Resource"] == {"Fn::Sub": "${ReportsBucket.Arn}/audits/*"}


@pytest.mark.parametrize("level", LEVELS)
def test_every_role_takes_the_boundary_and_the_path(level: str) -> None:
    for role in roles(level).values():
        assert role["Properties"]["Path"] == {"Ref": "RolePath"}
        assert role["Properties"]["PermissionsBoundary"]["Fn::If"][0] == "HasBoundary"


class Recorder(ThreadedClient):
    """Answers every call with nothing, and keeps its name."""

    region = "eu-west-1"

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def call(self, operation: str, **arguments: Any) -> dict[str, Any]:
        self.sent.append(operation)
        return {}


async def test_the_hashing_function_asks_of_its_queues_what_is_declared() -> None:
    client = Recorder()
    queue = SqsQueue("https://sqs.eu-west-1.amazonaws.com/123456789012/hash", client)
    await queue.send([Outgoing("{}")])
    await queue.hide("receipt", 30)
    assert set(client.sent) == QUEUE_CALLS.keys()
