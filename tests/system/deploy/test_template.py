"""The template that osls makes of the sources, at each level and in each partition: its resources, roles and rules."""

from __future__ import annotations

import json
import re

import pytest

from auditor.config.layers import environment_layer, resolve
from deploy.resolving import Stack
from tests.support.paths import ROOT
from tests.system.deploy.checks.packaged import needs_osls, of_level, stack_of, statements, template
from tests.system.deploy.checks.sources import LEVELS, as_list, of_type

pytestmark = needs_osls
CONTENTS = {"s3:GetObject", "s3:GetObjectVersion", "kms:Decrypt"}
KEPT = ("DeletionPolicy", "UpdateReplacePolicy")
PARTITIONS = {"aws": "eu-west-1", "aws-cn": "cn-north-1", "aws-us-gov": "us-gov-west-1"}
GIVEN = {
    "ReportsBucketName": "reports-of-ours",
    "TopicArn": "arn:aws:sns:us-east-1:123456789012:ours",
    "ChatTopicArn": "arn:aws:sns:us-east-1:123456789012:chat",
    "EventBusArn": "arn:aws:events:us-east-1:123456789012:event-bus/ours",
    "KmsKeyArn": "arn:aws:kms:us-east-1:123456789012:key/1",
    "PermissionsBoundaryArn": "arn:aws:iam::123456789012:policy/boundary",
    "RolePath": "/auditors/",
    "SubnetIds": "subnet-1,subnet-2",
    "SecurityGroupIds": "sg-1",
    "AuditedKeyArns": "arn:aws:kms:us-east-1:123456789012:key/2,arn:aws:kms:us-east-1:123456789012:key/3",
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_template_is_right_in_every_partition(level: str, partition: str) -> None:
    made = of_level(level)
    assert "arn:aws" not in json.dumps(made)
    resources = Stack(made, partition, PARTITIONS[partition]).resources()
    arns = re.findall(r"\barn:([a-z-]+):", json.dumps(resources))
    assert set(arns) == {partition}
    assert of_type(resources, "AWS::S3::Bucket").keys() == {"ServerlessDeploymentBucket", "ReportsBucket"}


@pytest.mark.parametrize("level", LEVELS)
def test_the_functions_settings_are_ones_that_they_take(level: str) -> None:
    named = stack_of(level, "config=conf/ours.toml", "logLevel=ERROR").resources()
    for name, function in of_type(stack_of(level).resources(), "AWS::Lambda::Function").items():
        variables = function["Environment"]["Variables"]
        layer = environment_layer(variables)
        others = {f"AUDITOR_{one}" for one in ("SERVICE", "LOG_LEVEL", "STATE_MACHINE", "MAP_CONCURRENCY")}
        known = {f"AUDITOR_{setting.upper()}" for setting in layer.values} | others
        assert {key for key, value in variables.items() if value} <= known, name
        settings = resolve([layer])
        assert bool(settings.ledger) == (level == "fixity")
        assert bool(settings.queue) == (level == "fixity" and name != "VerifyLambdaFunction")
        assert function["LoggingConfig"] == {"LogFormat": "JSON"}, name
        assert (variables["AUDITOR_CONFIG"], variables["AUDITOR_LOG_LEVEL"]) == ("", "INFO"), name
        changed = named[name]["Properties"]["Environment"]["Variables"]
        assert (changed["AUDITOR_CONFIG"], changed["AUDITOR_LOG_LEVEL"]) == ("auditor.toml", "ERROR"), name


@pytest.mark.parametrize(("function", "schedule"), [("Audit", "NightlySchedule"), ("Verify", "VerifySchedule")])
def test_a_schedule_starts_its_function_once_with_an_event_that_names_its_time_and_no_bucket(
    function: str, schedule: str
) -> None:
    stack = stack_of("fixity")
    resources = stack.resources()
    target = resources[schedule]["Properties"]["Target"]
    event = json.loads(target["Input"])
    assert event.pop("time") == "<aws.scheduler.scheduled-time>"  # EventBridge Scheduler's own word for it
    assert event.pop("resources") == ["<aws.scheduler.schedule-arn>"]
    assert event == {"source": "aws.scheduler", "detail-type": "Scheduled Event"}
    assert target["Arn"] == stack.arn_of(f"{function}LambdaFunction")
    assert target["DeadLetterConfig"]["Arn"] == stack.arn_of("AuditFailureQueue")
    assert target["RetryPolicy"]["MaximumRetryAttempts"] > 0
    made, invoked = (resources[f"{function}{kind}"]["Properties"] for kind in ("LambdaFunction", "InvokeConfig"))
    assert "RecursiveLoop" not in made, "no function invokes itself"
    assert (invoked["FunctionName"], invoked["MaximumRetryAttempts"]) == (made["FunctionName"], 0)
    assert invoked["DestinationConfig"]["OnFailure"]["Destination"] == stack.arn_of("AuditFailureQueue")


def test_a_share_takes_the_place_of_the_age_in_verifications() -> None:
    for parameters, due in (((), (90 * 86_400, None)), (("verifyPercent=5",), (None, 5))):
        function = stack_of("fixity", *parameters).resources()["VerifyLambdaFunction"]["Properties"]
        settings = resolve([environment_layer(function["Environment"]["Variables"])])
        assert (settings.max_age, settings.percent) == due


@pytest.mark.parametrize("stage", ["prod", "local"])
def test_the_queues_hide_redrive_and_keep(stage: str) -> None:
    stack = Stack(template("level=fixity", "buckets=photos", "renew=true", stage=stage))
    resources = stack.resources()
    queues = of_type(resources, "AWS::SQS::Queue")
    for function, letters, names in (
        ("Hashing", "DeadLetterQueue", {"HashQueue", "NotificationQueue"}),
        ("Renew", "RenewDeadLetterQueue", {"RenewQueue"}),
    ):
        for name in names:
            timeout = resources[f"{function}LambdaFunction"]["Properties"]["Timeout"]
            assert queues[name]["VisibilityTimeout"] == 6 * timeout
            assert queues[name]["RedrivePolicy"]["deadLetterTargetArn"] == stack.arn_of(letters)
            assert queues[name]["MessageRetentionPeriod"] < queues[letters]["MessageRetentionPeriod"]
        allowed_sources = queues[letters]["RedriveAllowPolicy"]["sourceQueueArns"]
        assert set(allowed_sources) == {stack.arn_of(name) for name in names}
    assert all(queue["SqsManagedSseEnabled"] for queue in queues.values())
    sources = of_type(resources, "AWS::Lambda::EventSourceMapping").values()
    assert [one["FunctionResponseTypes"] for one in sources] == [["ReportBatchItemFailures"]] * 3


def test_the_results_are_closed_encrypted_and_kept() -> None:
    resources = stack_of("fixity").resources()
    bucket, ledger, policy = resources["ReportsBucket"], resources["Ledger"], resources["ReportsBucketPolicy"]
    kept = {bucket["DeletionPolicy"], *(one[name] for one in (ledger, policy) for name in KEPT)}
    assert kept == {"Retain"}
    assert set(bucket["Properties"]["PublicAccessBlockConfiguration"].values()) == {True}
    assert bucket["Properties"]["VersioningConfiguration"] == {"Status": "Enabled"}
    assert ledger["Properties"]["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert ledger["Properties"]["SSESpecification"] == {"SSEEnabled": True}
    assert ledger["Properties"]["DeletionProtectionEnabled"] is True
    refused = {one["Sid"]: one for one in policy["Properties"]["PolicyDocument"]["Statement"]}["EncryptedTransportOnly"]
    assert (refused["Effect"], refused["Principal"], refused["Action"]) == ("Deny", "*", "s3:*")


def test_silence_is_an_alarm_and_every_alarm_is_heard() -> None:
    stack = stack_of("fixity", "renew=true")
    alarms = of_type(stack.resources(), "AWS::CloudWatch::Alarm")
    assert {"RenewDeadLettersAlarm", "RenewQueueAgeAlarm"} <= alarms.keys()
    silent = alarms["NoAuditAlarm"]
    assert silent["TreatMissingData"] == "breaching"
    assert silent["Period"] * silent["EvaluationPeriods"] == 26 * 3600
    assert all(alarm["AlarmActions"] == [stack.arn_of("AlertTopic")] for alarm in alarms.values())
    assert all("s3-auditor-prod" in alarm["Dimensions"][0]["Value"] for alarm in alarms.values())


def test_a_bucket_topic_network_and_boundary_that_exist_are_used_instead_of_made() -> None:
    resources = stack_of("fixity", **GIVEN).resources()
    assert not {"ReportsBucket", "ReportsBucketPolicy", "AlertTopic", "AlertTopicPolicy"} & resources.keys()
    variables = resources["AuditLambdaFunction"]["Properties"]["Environment"]["Variables"]
    assert variables["AUDITOR_OUT"] == "s3://reports-of-ours/audits"
    channels = [variables[f"AUDITOR_{name}"] for name in ("TOPIC", "CHAT_TOPIC", "EVENT_BUS")]
    assert channels == [GIVEN[f"{name}Arn"] for name in ("Topic", "ChatTopic", "EventBus")]
    for function in of_type(resources, "AWS::Lambda::Function").values():
        assert function["VpcConfig"] == {"SubnetIds": ["subnet-1", "subnet-2"], "SecurityGroupIds": ["sg-1"]}
    for role in of_type(resources, "AWS::IAM::Role").values():
        assert (role["Path"], role["PermissionsBoundary"]) == ("/auditors/", GIVEN["PermissionsBoundaryArn"])


def test_a_ledger_that_exists_already_is_used_instead_of_made() -> None:
    elsewhere = "arn:aws:dynamodb:eu-west-1:999988887777:table/digests"
    arns = {"": "", "digests": "arn:aws:dynamodb:us-east-1:123456789012:table/digests", elsewhere: elsewhere}
    for given, arn in arns.items():
        stack = stack_of("fixity", LedgerNameOrArn=given)
        resources = stack.resources()
        assert bool(of_type(resources, "AWS::DynamoDB::Table")) == (not given)
        for name in ("Audit", "Hashing"):
            ledger = resources[f"{name}LambdaFunction"]["Properties"]["Environment"]["Variables"]["AUDITOR_LEDGER"]
            assert ledger == f"dynamodb:{given or stack.resolve({'Ref': 'Ledger'})}"
            allowed = statements(resources, f"{name}Role")["Ledger"]["Resource"]
            assert allowed == (arn or stack.arn_of("Ledger"))
        if given:
            assert stack.resolve(stack.template["Outputs"]["LedgerTable"]["Value"]) == given


def test_a_prefix_with_a_star_in_it_is_taken_to_the_letter() -> None:
    resources = Stack(template("buckets=photos/20*4/", "level=exposure")).resources()
    assert statements(resources, "AuditRole")["Objects"]["Resource"] == ["arn:aws:s3:::photos/20${*}4/*"]


@pytest.mark.parametrize("level", LEVELS)
def test_at_exposure_alone_the_audits_role_neither_reads_an_object_nor_decrypts(level: str) -> None:
    assert "ManagedPolicyArns" not in of_level(level)["Resources"]["AuditRole"]["Properties"]
    found = {"Allow": set[str](), "Deny": set[str]()}
    for sid, one in statements(stack_of(level, KmsKeyArn=GIVEN["KmsKeyArn"]).resources(), "AuditRole").items():
        if sid != "Reports":
            found[one["Effect"]] |= CONTENTS.intersection(as_list(one["Action"]))
    assert found == ({"Allow": set(), "Deny": CONTENTS} if level == "exposure" else {"Allow": CONTENTS, "Deny": set()})


def test_each_schedule_starts_its_own_function_alone_and_puts_away_the_event_that_did_not_start() -> None:
    stack = stack_of("fixity")
    for name, function in (("ScheduleRole", "Audit"), ("VerifyScheduleRole", "Verify")):
        found = statements(stack.resources(), name)
        started = {one["Resource"] for one in found.values() if one["Action"] == "lambda:InvokeFunction"}
        assert started == {stack.arn_of(f"{function}LambdaFunction")}
        names = {action for one in found.values() for action in as_list(one["Action"])}
        assert names == {"lambda:InvokeFunction", "sqs:SendMessage"}


def test_objects_of_the_audited_buckets_alone_are_told_of() -> None:
    stack = Stack(of_level("fixity"))
    resources = stack.resources()
    policy = resources["NotificationQueuePolicy"]["Properties"]["PolicyDocument"]["Statement"]
    conditions = {one["Sid"]: one["Condition"] for one in policy if one["Effect"] == "Allow"}
    assert conditions["TheBuckets"] == {
        "ArnEquals": {"aws:SourceArn": ["arn:aws:s3:::photos", "arn:aws:s3:::archive"]},
        "StringEquals": {"aws:SourceAccount": "123456789012"},
    }
    assert conditions["TheRule"]["ArnEquals"] == {"aws:SourceArn": [stack.arn_of("ObjectEventsRule")]}
    assert "TheTopic" not in conditions
    (target,) = resources["ObjectEventsRule"]["Properties"]["Targets"]
    assert target["DeadLetterConfig"] == {"Arn": stack.arn_of("DeadLetterQueue")}
    letters = resources["DeadLetterQueuePolicy"]["Properties"]["PolicyDocument"]["Statement"]
    (allowed,) = [one for one in letters if one["Effect"] == "Allow"]
    assert (allowed["Principal"], allowed["Action"]) == ({"Service": "events.amazonaws.com"}, "sqs:SendMessage")
    assert allowed["Condition"]["ArnEquals"] == {"aws:SourceArn": [stack.arn_of("ObjectEventsRule")]}
    pattern = resources["ObjectEventsRule"]["Properties"]["EventPattern"]
    assert pattern["detail"]["$or"] == [
        {"bucket": {"name": ["photos"]}},
        {"bucket": {"name": ["archive"]}, "object": {"key": [{"prefix": "2024/"}]}},
    ]


def test_the_rule_passes_on_what_the_worker_takes_and_nothing_else() -> None:
    paths = [path for path in (ROOT / "events").glob("s3-eventbridge*.json") if not path.stem.endswith("-acl")]
    samples = [json.loads(path.read_bytes()) for path in paths]
    taken = {json.loads(record["body"])["detail-type"] for sample in samples for record in sample["Records"]}
    pattern = Stack(of_level("fixity")).resources()["ObjectEventsRule"]["Properties"]["EventPattern"]
    assert set(pattern["detail-type"]) == taken
