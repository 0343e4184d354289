"""The template that osls makes of the sources, at each level and in each partition."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from auditor.config.layers import environment_layer, resolve
from deploy.resolving import Stack
from tests.system.deploy.checks.packaged import needs_osls, of_level, template
from tests.system.deploy.checks.sources import LEVELS, of_type

PARTITIONS = {"aws": "eu-west-1", "aws-cn": "cn-north-1", "aws-us-gov": "us-gov-west-1"}
GIVEN = {
    "ReportsBucketName": "reports-of-ours",
    "TopicArn": "arn:aws:sns:eu-west-1:123456789012:ours",
    "ChatTopicArn": "arn:aws:sns:eu-west-1:123456789012:chat",
    "EventBusArn": "arn:aws:events:eu-west-1:123456789012:event-bus/ours",
    "KmsKeyArn": "arn:aws:kms:eu-west-1:123456789012:key/1",
    "PermissionsBoundaryArn": "arn:aws:iam::123456789012:policy/boundary",
    "RolePath": "/auditors/",
    "SubnetIds": "subnet-1,subnet-2",
    "SecurityGroupIds": "sg-1",
    "AuditedKeyArns": "arn:aws:kms:eu-west-1:123456789012:key/2,arn:aws:kms:eu-west-1:123456789012:key/3",
}


def allowed(resources: dict[str, Any], role: str) -> list[dict[str, Any]]:
    statements = resources[role]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
    return [one for one in statements if one["Effect"] == "Allow"]


def denied(resources: dict[str, Any]) -> dict[str, dict[str, Any]]:
    statements = resources["AuditRole"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
    return {one["Sid"]: one for one in statements if one["Effect"] == "Deny"}


@needs_osls
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_template_is_right_in_every_partition(level: str, partition: str) -> None:
    made = of_level(level)
    assert "arn:aws" not in json.dumps(made)
    resources = Stack(made, partition, PARTITIONS[partition]).resources()
    arns = re.findall(r"\barn:([a-z-]+):", json.dumps(resources))
    assert set(arns) == {partition}


@needs_osls
@pytest.mark.parametrize("level", LEVELS)
def test_what_is_made_at_a_level(level: str) -> None:
    resources = Stack(of_level(level)).resources()
    hashing = {"HashQueue", "NotificationQueue", "DeadLetterQueue", "Ledger", "HashingRole", "HashingLambdaFunction"}
    assert hashing & resources.keys() == (hashing if level == "fixity" else set())
    always = {"AuditFailureQueue", "ReportsBucket", "AlertTopic", "AuditRole", "ScheduleRole", "NightlySchedule"}
    assert always <= resources.keys()


@needs_osls
@pytest.mark.parametrize("level", LEVELS)
def test_the_functions_settings_are_ones_that_they_take(level: str) -> None:
    for name, function in of_type(Stack(of_level(level)).resources(), "AWS::Lambda::Function").items():
        variables = function["Environment"]["Variables"]
        layer = environment_layer(variables)
        others = {"AUDITOR_SERVICE", "AUDITOR_HANDS_ON", "AUDITOR_LOG_LEVEL"}
        others |= {"AUDITOR_MAP_RANGES", "AUDITOR_MAP_CONCURRENCY"}
        known = {f"AUDITOR_{setting.upper()}" for setting in layer.values} | others
        assert {key for key, value in variables.items() if value} <= known, name
        settings = resolve([layer])
        assert bool(settings.ledger) == (level == "fixity")
        assert bool(settings.queue) == (level == "fixity" and name != "VerifyLambdaFunction")


@needs_osls
def test_every_function_logs_json_and_reads_the_configuration_that_is_named() -> None:
    for name, function in of_type(Stack(of_level("fixity")).resources(), "AWS::Lambda::Function").items():
        assert function["LoggingConfig"] == {"LogFormat": "JSON"}, name
        assert function["Environment"]["Variables"]["AUDITOR_LOG_LEVEL"] == "INFO"
        assert function["Environment"]["Variables"]["AUDITOR_CONFIG"] == ""
    named = of_level("fixity", "--param", "config=conf/ours.toml", "--param", "logLevel=ERROR")
    for name, function in of_type(Stack(named).resources(), "AWS::Lambda::Function").items():
        assert function["Environment"]["Variables"]["AUDITOR_CONFIG"] == "auditor.toml", name
        assert function["Environment"]["Variables"]["AUDITOR_LOG_LEVEL"] == "ERROR", name


@needs_osls
def test_the_audit_function_as_asked_for() -> None:
    resources = Stack(of_level("fixity")).resources()
    function = resources["AuditLambdaFunction"]["Properties"]
    assert (function["Runtime"], function["Architectures"]) == ("python3.13", ["arm64"])
    assert (function["Timeout"], function["MemorySize"]) == (900, 1769)
    assert function["RecursiveLoop"] == "Allow"
    assert "VpcConfig" not in function
    invoked = resources["AuditInvokeConfig"]["Properties"]
    assert (invoked["FunctionName"], invoked["MaximumRetryAttempts"]) == (function["FunctionName"], 0)
    assert invoked["DestinationConfig"]["OnFailure"]["Destination"].endswith(":s3-auditor-prod-audit-failures")
    own = [one for one in allowed(resources, "AuditRole") if one["Action"] == "lambda:InvokeFunction"]
    assert [one["Resource"] for one in own] == [Stack(of_level("fixity")).arn_of("AuditLambdaFunction")]


@needs_osls
def test_the_verifying_function_as_asked_for() -> None:
    stack = Stack(of_level("fixity"))
    resources = stack.resources()
    function = resources["VerifyLambdaFunction"]["Properties"]
    assert (function["Timeout"], function["MemorySize"]) == (900, 1769)
    assert "EphemeralStorage" not in function
    assert function["RecursiveLoop"] == "Allow"
    settings = resolve([environment_layer(function["Environment"]["Variables"])])
    assert (settings.max_age, settings.percent, settings.every) == (90 * 86_400, None, 86_400)
    assert not settings.record
    invoked = resources["VerifyInvokeConfig"]["Properties"]
    assert (invoked["FunctionName"], invoked["MaximumRetryAttempts"]) == (function["FunctionName"], 0)
    own = [one for one in allowed(resources, "VerifyRole") if one["Action"] == "lambda:InvokeFunction"]
    assert [one["Resource"] for one in own] == [stack.arn_of("VerifyLambdaFunction")]
    target = resources["VerifySchedule"]["Properties"]["Target"]
    assert target["Arn"] == stack.arn_of("VerifyLambdaFunction")
    event = json.loads(target["Input"])
    assert event.pop("time") == "<aws.scheduler.scheduled-time>"  # EventBridge Scheduler's own word for it
    assert event.pop("resources") == ["<aws.scheduler.schedule-arn>"]
    assert event == {"source": "aws.scheduler", "detail-type": "Scheduled Event"}


@needs_osls
def test_a_share_takes_the_place_of_the_age() -> None:
    function = Stack(of_level("fixity", "--param", "verifyPercent=5")).resources()["VerifyLambdaFunction"]
    settings = resolve([environment_layer(function["Properties"]["Environment"]["Variables"])])
    assert (settings.max_age, settings.percent) == (None, 5)


@needs_osls
def test_the_hashing_function_as_asked_for() -> None:
    resources = Stack(of_level("fixity")).resources()
    function = resources["HashingLambdaFunction"]["Properties"]
    assert (function["Timeout"], function["MemorySize"]) == (900, 512)
    assert function["RecursiveLoop"] == "Allow"
    sources = of_type(resources, "AWS::Lambda::EventSourceMapping").values()
    assert len({one["EventSourceArn"] for one in sources}) == 2
    for one in sources:
        assert one["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert one["ScalingConfig"]["MaximumConcurrency"] >= 2


@needs_osls
@pytest.mark.parametrize("arguments", [("--stage", "prod"), ("--stage", "local")], ids=["prod", "local"])
def test_the_queues_hide_redrive_and_keep(arguments: tuple[str, ...]) -> None:
    stack = Stack(template(*arguments, "--param", "level=fixity", "--param", "buckets=photos"))
    resources = stack.resources()
    queues, timeout = of_type(resources, "AWS::SQS::Queue"), resources["HashingLambdaFunction"]["Properties"]["Timeout"]
    for name in ("HashQueue", "NotificationQueue"):
        assert queues[name]["VisibilityTimeout"] == 6 * timeout
        assert queues[name]["RedrivePolicy"]["deadLetterTargetArn"] == stack.arn_of("DeadLetterQueue")
        assert queues[name]["MessageRetentionPeriod"] < queues["DeadLetterQueue"]["MessageRetentionPeriod"]
    allowed_sources = queues["DeadLetterQueue"]["RedriveAllowPolicy"]["sourceQueueArns"]
    assert set(allowed_sources) == {stack.arn_of("HashQueue"), stack.arn_of("NotificationQueue")}
    assert all(queue["SqsManagedSseEnabled"] for queue in queues.values())


@needs_osls
def test_the_schedule_starts_the_audit_with_an_event_that_names_its_time_and_no_bucket() -> None:
    stack = Stack(of_level("metadata"))
    target = stack.resources()["NightlySchedule"]["Properties"]["Target"]
    event = json.loads(target["Input"])
    assert event.pop("time") == "<aws.scheduler.scheduled-time>"  # EventBridge Scheduler's own word for it
    assert event.pop("resources") == ["<aws.scheduler.schedule-arn>"]
    assert event == {"source": "aws.scheduler", "detail-type": "Scheduled Event"}
    assert target["Arn"] == stack.arn_of("AuditLambdaFunction")
    assert target["DeadLetterConfig"]["Arn"] == stack.arn_of("AuditFailureQueue")
    assert target["RetryPolicy"]["MaximumRetryAttempts"] > 0


@needs_osls
def test_the_audited_buckets_are_no_resources_of_the_stack() -> None:
    for level in LEVELS:
        buckets = of_type(Stack(of_level(level)).resources(), "AWS::S3::Bucket")
        assert buckets.keys() == {"ServerlessDeploymentBucket", "ReportsBucket"}
        assert "NotificationConfiguration" not in buckets["ReportsBucket"]


@needs_osls
def test_what_holds_results_is_closed_encrypted_and_kept() -> None:
    resources = Stack(of_level("fixity")).resources()
    bucket, ledger = resources["ReportsBucket"], resources["Ledger"]
    assert {bucket["DeletionPolicy"], ledger["DeletionPolicy"], ledger["UpdateReplacePolicy"]} == {"Retain"}
    assert set(bucket["Properties"]["PublicAccessBlockConfiguration"].values()) == {True}
    assert bucket["Properties"]["VersioningConfiguration"] == {"Status": "Enabled"}
    assert bucket["Properties"]["LifecycleConfiguration"]["Rules"][0]["ExpirationInDays"] == 400
    assert ledger["Properties"]["BillingMode"] == "PAY_PER_REQUEST"
    assert ledger["Properties"]["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert ledger["Properties"]["SSESpecification"] == {"SSEEnabled": True}
    assert {one["RetentionInDays"] for one in of_type(resources, "AWS::Logs::LogGroup").values()} == {90}


@needs_osls
def test_silence_is_an_alarm_and_every_alarm_is_heard() -> None:
    stack = Stack(of_level("fixity"))
    alarms = of_type(stack.resources(), "AWS::CloudWatch::Alarm")
    silent = alarms["NoAuditAlarm"]
    assert silent["TreatMissingData"] == "breaching"
    assert silent["Period"] * silent["EvaluationPeriods"] == 26 * 3600
    assert all(alarm["AlarmActions"] == [stack.arn_of("AlertTopic")] for alarm in alarms.values())
    assert all(alarm["Dimensions"][0]["Value"].startswith("s3-auditor-prod") for alarm in alarms.values())


@needs_osls
def test_what_exists_already_is_used_instead_of_made() -> None:
    resources = Stack(of_level("fixity"), parameters=GIVEN).resources()
    assert not {"ReportsBucket", "ReportsBucketPolicy", "AlertTopic", "AlertTopicPolicy"} & resources.keys()
    variables = resources["AuditLambdaFunction"]["Properties"]["Environment"]["Variables"]
    assert variables["AUDITOR_OUT"] == "s3://reports-of-ours/audits"
    assert variables["AUDITOR_TOPIC"] == GIVEN["TopicArn"]
    assert (variables["AUDITOR_CHAT_TOPIC"], variables["AUDITOR_EVENT_BUS"]) == (
        GIVEN["ChatTopicArn"],
        GIVEN["EventBusArn"],
    )
    for function in of_type(resources, "AWS::Lambda::Function").values():
        assert function["VpcConfig"] == {"SubnetIds": ["subnet-1", "subnet-2"], "SecurityGroupIds": ["sg-1"]}
    for role in of_type(resources, "AWS::IAM::Role").values():
        assert (role["Path"], role["PermissionsBoundary"]) == ("/auditors/", GIVEN["PermissionsBoundaryArn"])
    keys = [one for one in allowed(resources, "HashingRole") if one["Action"] == "kms:Decrypt"]
    assert [one["Resource"] for one in keys] == [GIVEN["AuditedKeyArns"].split(",")]


@needs_osls
@pytest.mark.parametrize(
    ("given", "arn"),
    [
        ("digests", "arn:aws:dynamodb:eu-west-1:123456789012:table/digests"),
        ("arn:aws:dynamodb:eu-west-1:999988887777:table/digests",) * 2,
    ],
    ids=["name", "arn"],
)
def test_a_ledger_that_exists_already_is_used_instead_of_made(given: str, arn: str) -> None:
    stack = Stack(of_level("fixity"), parameters={"LedgerNameOrArn": given})
    resources = stack.resources()
    assert of_type(resources, "AWS::DynamoDB::Table") == {}
    for name, role in (("AuditLambdaFunction", "AuditRole"), ("HashingLambdaFunction", "HashingRole")):
        assert resources[name]["Properties"]["Environment"]["Variables"]["AUDITOR_LEDGER"] == f"dynamodb:{given}"
        assert [one["Resource"] for one in allowed(resources, role) if one["Sid"] == "Ledger"] == [arn]
    assert stack.resolve(of_level("fixity")["Outputs"]["LedgerTable"]["Value"]) == given


@needs_osls
def test_without_a_given_ledger_the_roles_name_the_one_that_is_made() -> None:
    stack = Stack(of_level("fixity"))
    resources = stack.resources()
    for role in ("AuditRole", "HashingRole"):
        assert [one["Resource"] for one in allowed(resources, role) if one["Sid"] == "Ledger"] == [
            stack.arn_of("Ledger")
        ]


@needs_osls
def test_the_kept_reports_bucket_keeps_its_policy() -> None:
    kept = Stack(of_level("fixity")).resources()["ReportsBucketPolicy"]
    assert (kept["DeletionPolicy"], kept["UpdateReplacePolicy"]) == ("Retain", "Retain")
    refused = {one["Sid"]: one for one in kept["Properties"]["PolicyDocument"]["Statement"]}["EncryptedTransportOnly"]
    assert (refused["Effect"], refused["Principal"], refused["Action"]) == ("Deny", "*", "s3:*")


@needs_osls
def test_without_a_key_of_its_own_exposure_decrypts_nothing_at_all() -> None:
    resources = Stack(of_level("exposure")).resources()
    assert not [one for one in allowed(resources, "AuditRole") if "kms" in json.dumps(one["Action"])]
    assert denied(resources)["NoDecryption"] == {
        "Sid": "NoDecryption",
        "Effect": "Deny",
        "Action": "kms:Decrypt",
        "Resource": "*",
    }


@needs_osls
def test_with_a_key_of_its_own_exposure_may_be_let_decrypt_reports_alone() -> None:
    resources = Stack(of_level("exposure"), parameters=GIVEN).resources()
    (key,) = [one for one in allowed(resources, "AuditRole") if one["Sid"] == "StackKey"]
    assert (key["Action"], key["Resource"]) == ("kms:GenerateDataKey", GIVEN["KmsKeyArn"])
    assert denied(resources)["NoDecryption"]["NotResource"] == [GIVEN["KmsKeyArn"]]
    assert "Resource" not in denied(resources)["NoDecryption"]
    assert denied(resources)["NoContents"]["NotResource"] == ["arn:aws:s3:::reports-of-ours/audits/*"]
    assert "Resource" not in denied(resources)["NoContents"]


@needs_osls
def test_a_prefix_with_a_star_in_it_is_taken_to_the_letter() -> None:
    made = template("--stage", "prod", "--param", "buckets=photos/20*4/", "--param", "level=exposure")
    objects = next(one for one in allowed(Stack(made).resources(), "AuditRole") if one["Sid"] == "Objects")
    assert objects["Resource"] == ["arn:aws:s3:::photos/20${*}4/*"]
