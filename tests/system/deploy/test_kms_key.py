"""A customer's key: on all that can have one, in the roles' rights, and in the key's own policy of the docs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from deploy.deployer import main
from tests.system.deploy.checks.packaged import needs_osls, of_level, stack_of
from tests.system.deploy.checks.sources import LEVELS, as_list, of_type
from tests.system.deploy.test_docs import block

pytestmark = needs_osls
KEY: Final = "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d-0000-4000-8000-000000000000"

NEEDS: Final = {
    "s3:PutObject": {"kms:GenerateDataKey"},
    "s3:GetObject": {"kms:Decrypt"},
    "sqs:SendMessage": {"kms:Decrypt", "kms:GenerateDataKey"},
    "sqs:ReceiveMessage": {"kms:Decrypt"},
    "sns:Publish": {"kms:Decrypt", "kms:GenerateDataKey"},
    "dynamodb:GetItem": {"kms:Decrypt"},
    "states:RedriveExecution": {"kms:Decrypt", "kms:GenerateDataKey"},
}
"""By a call on a resource under the key: the actions on the key (guides of S3, SQS, SNS, DynamoDB and Step Functions,
where the machine's own role needs them)."""

WITHOUT: Final = {
    "CloudWatch::Alarm",
    "Events::Rule",
    "IAM::Role",
    "Lambda::EventInvokeConfig",
    "Lambda::EventSourceMapping",
    "S3::BucketPolicy",
    "SNS::TopicPolicy",
    "SQS::QueuePolicy",
    "Scheduler::Schedule",
}
"""Types that hold no data of ours, or the schedules' fixed events."""


def keyed(level: str, *parameters: str, **more: str) -> dict[str, Any]:
    return stack_of(level, *parameters, KmsKeyArn=KEY, **more).resources()


def key_of(kind: str, given: dict[str, Any]) -> object:
    """The key of a resource by its type and properties; None if it has none."""
    match kind:
        case "AWS::SQS::Queue":
            return None if given["SqsManagedSseEnabled"] else given["KmsMasterKeyId"]
        case "AWS::SNS::Topic":
            return given.get("KmsMasterKeyId")
        case "AWS::DynamoDB::Table":
            made = given["SSESpecification"]
            return made["KMSMasterKeyId"] if made.get("SSEType") == "KMS" else None
        case "AWS::Logs::LogGroup":
            return given.get("KmsKeyId")
        case "AWS::StepFunctions::StateMachine":
            return given.get("EncryptionConfiguration", {}).get("KmsKeyId")
        case "AWS::Lambda::Function":
            return given.get("KmsKeyArn")
        case _:
            (rule,) = given["BucketEncryption"]["ServerSideEncryptionConfiguration"]
            return rule["ServerSideEncryptionByDefault"].get("KMSMasterKeyID")


@pytest.mark.parametrize("parameters", [(), ("renew=true",)], ids=["plain", "renew"])
@pytest.mark.parametrize("level", LEVELS)
def test_all_that_can_have_a_key_has_the_one_that_is_given_and_none_without(
    level: str, parameters: tuple[str, ...]
) -> None:
    plain = stack_of(level, *parameters).resources()
    for name, one in keyed(level, *parameters).items():
        kind = one["Type"]
        if kind.removeprefix("AWS::") not in WITHOUT and not name.startswith("ServerlessDeployment"):
            assert key_of(kind, one["Properties"]) == KEY, name
            assert key_of(kind, plain[name]["Properties"]) is None, name
    assert "kms:" not in json.dumps([one for one in plain.values() if one["Type"] != "AWS::IAM::Role"])
    assert "StackKey" not in json.dumps(plain)


@pytest.mark.parametrize("level", LEVELS)
def test_each_role_has_on_the_key_what_its_calls_need_and_nothing_else(level: str) -> None:
    for name, role in of_type(keyed(level), "AWS::IAM::Role").items():
        (document,) = (one["PolicyDocument"] for one in role["Policies"])
        allowed = [one for one in document["Statement"] if one["Effect"] == "Allow"]
        calls = {call for one in allowed if one["Sid"] != "Objects" for call in as_list(one["Action"])}
        needed = set().union(*(NEEDS.get(call, set()) for call in calls))
        if (level, name) == ("exposure", "AuditRole"):
            needed -= {"kms:Decrypt"}  # the key's own policy has it: this role is denied every other key
        (on_key,) = [one for one in allowed if one["Sid"] == "StackKey"]
        assert (set(as_list(on_key["Action"])), on_key["Resource"]) == (needed, KEY), name


def test_the_keys_policy_lets_in_each_service_that_sends_to_queues_and_topic() -> None:
    resources = keyed("fixity", NotificationTopicArn="arn:aws:sns:us-east-1:123456789012:theirs")
    policies = {**of_type(resources, "AWS::SQS::QueuePolicy"), **of_type(resources, "AWS::SNS::TopicPolicy")}
    senders = {
        statement["Principal"]["Service"]
        for one in policies.values()
        for statement in one["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
    }
    (written, logs) = block("S3AuditorSenders")
    assert set(written["Principal"]["Service"]) == senders
    assert set(written["Action"]) == NEEDS["sqs:SendMessage"]
    groups = {one["LogGroupName"] for one in of_type(resources, "AWS::Logs::LogGroup").values()}
    (pattern,) = logs["Condition"]["ArnLike"].values()
    assert {name.startswith(pattern.partition("log-group:")[2].rstrip("*")) for name in groups} == {True}


def test_the_deployers_policy_has_the_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "template.json"
    for parameters in ((), (f"kmsKey={KEY}",)):
        made.write_text(json.dumps(of_level("fixity", *parameters)))
        assert main(["--made", str(made)]) == 0
        found = json.loads(capsys.readouterr().out)["Statement"]
        assert [one["Resource"] for one in found if "kms:CreateGrant" in one["Action"]] == ([KEY] if parameters else [])
