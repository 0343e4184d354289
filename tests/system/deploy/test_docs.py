"""docs/deploy.md against its sources: parameters, roles, alarms and commands; the selector of docs/scale.md."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import botocore.session
import pytest
from botocore import xform_name
from botocore.validate import ParamValidator

from auditor.lambdas.metrics import UNITS
from auditor.model.target import Target
from auditor.offline.iam import actions, roles
from auditor.offline.iam.roles import Deployment
from tests.support.paths import ROOT
from tests.support.servers.clients import client
from tests.system.deploy.checks.sources import LEVELS, of_type, parameters, read, resources_of_level

PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
NIGHTS = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
NOTIFICATIONS = (ROOT / "docs" / "outputs.md").read_text(encoding="utf-8")
QUEUE_ARN = "arn:aws:sqs:us-east-1:123456789012:s3-auditor-prod-notifications"
NOT_OPERATIONS = {("s3", "cp"), ("cloudformation", "deploy")}
"""Commands of the AWS CLI that are no API calls."""


KEY = "arn:aws:kms:eu-central-1:111122223333:key/0a1b"
FILES = "arn:aws:elasticfilesystem:eu-central-1:111122223333:access-point/fsap-0a1b"
ROLES = {
    "audit": roles.audit_role_policy,
    "hashing": roles.hashing_role_policy,
    "verify": roles.verify_role_policy,
}


def allowed(function: str, level: str = "fixity") -> set[str]:
    """The IAM actions of the function's role at a level."""
    deployment = Deployment(
        level=level,
        out="s3://reports/audits",
        ledger="dynamodb:digests",
        audited_keys=[KEY],
        key_policies=level != "exposure",
        reports_key=KEY,
        in_vpc=True,
        file_system=FILES,
        inventory="s3://inventories/night",
        inventory_key=KEY,
        event_bus="arn:aws:events:eu-west-1:123456789012:event-bus/ours",
    )
    policy = ROLES[function]([Target("photos")], deployment, "aws")
    return {action for one in policy["Statement"] if one["Effect"] == "Allow" for action in one["Action"]}


def table(head: str) -> list[list[str]]:
    """The cells of the table whose first row begins so, without its head."""
    rows = PAGE.partition(f"\n{head}")[2].partition("\n\n")[0].splitlines()[2:]
    assert rows, f"there is no table {head}"
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def block(*words: str, page: str = PAGE) -> Any:
    """The one JSON block of the page that holds all of these words."""
    blocks = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    (found,) = [text for text in blocks if all(f'"{word}"' in text for word in words)]
    return json.loads(found)


def test_the_page_of_the_configuration_has_every_parameter() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = page.partition("|parameter|default|meaning|\n")[2].splitlines()[1:]
    assert re.findall(r"^\|`(\w+)`", "\n".join(rows), re.MULTILINE) == list(parameters()["default"])


OF_ROLES = {
    "all": {*LEVELS, "hashing", "verify"},
    "audit": {*LEVELS},
    "audit from metadata": {"metadata", "fixity"},
    "audit at fixity": {"fixity"},
    "hashing": {"hashing"},
    "verify": {"verify"},
}
"""The roles, and the levels of the audit's role, by their names in the table."""


def actions_of(role: str) -> set[str]:
    rows = table("|on|action|role|")
    return {
        name
        for row in rows
        if role in set().union(*(OF_ROLES[one] for one in row[2].split(", ")))
        for name in quoted(row[1])
    }


def test_the_table_of_the_roles_is_what_the_code_declares() -> None:
    assert {level: actions_of(level) for level in LEVELS} == {level: allowed("audit", level) for level in LEVELS}
    assert actions_of("hashing") == allowed("hashing")
    assert actions_of("verify") == allowed("verify")


def test_what_the_owner_of_a_given_reports_bucket_adds_is_what_a_made_one_has() -> None:
    written = block("s3:GetObject", "S3AuditorRunFolders")
    made = resources_of_level("exposure")["ReportsBucketPolicy"]["Properties"]["PolicyDocument"]["Statement"]
    (ours,) = [one for one in made if one["Effect"] == "Allow"]
    assert (written["Effect"], written["Action"]) == (ours["Effect"], ours["Action"])
    assert written["Principal"].keys() == ours["Principal"].keys() == {"AWS"}
    assert written["Resource"].partition("/")[2] == ours["Resource"]["Fn::Sub"].partition("/")[2] == "audits/*"


def test_what_the_owner_of_a_given_key_adds_is_what_the_role_lacks_at_exposure() -> None:
    written = block("kms:Decrypt", "S3AuditorRunFolders")
    assert {written["Action"]} == set(actions.REPORTS_KEY) - allowed("audit", "exposure")
    assert written["Principal"] == {"AWS": "AUDIT-ROLE-ARN"}


def test_every_resource_but_policies_and_subscriptions_is_named_at_its_level() -> None:
    rows = table("|resource|levels|")
    for level in LEVELS:
        named = {name for row in rows if row[1] in ("all", level) for name in quoted(row[0])}
        made = {name for name in resources_of_level(level) if not name.endswith("Policy")}
        functions = {name for name in named if name.endswith(("LambdaFunction", "LogGroup"))}
        assert named - functions == made


def test_each_alarm_has_something_to_do_and_its_costs() -> None:
    made = of_type(resources_of_level("fixity"), "AWS::CloudWatch::Alarm").values()
    names = {alarm["AlarmName"].removeprefix("${self:custom.name}-") for alarm in made}
    assert {quoted(row[0])[0] for row in table("|alarm|it means|")} == names
    assert [row for row in table("|alarm|it means|") if not row[2]] == []

    few, many = (len(of_type(resources_of_level(level), "AWS::CloudWatch::Alarm")) for level in ("metadata", "fixity"))
    assert (
        f"$0.10 for each alarm ({few} of them, {many} at `fixity`; one or two more for each bucket),"
        f" up to {len(UNITS)} metrics" in PAGE
    )


def test_what_stays_a_parameter_of_the_plain_template_is_named() -> None:
    sentence = PAGE.partition("stays a parameter of the stack: ")[2].partition(". All other")[0]
    given = {
        name
        for file in ("given", "inventory", "keys", "ledger", "notifications")
        for name in read(f"deploy/resources/{file}.yml")["Parameters"]
    }
    assert set(quoted(sentence)) == given | {"metadata", "fixity"}


def test_the_owners_statements_are_what_an_audit_from_outside_can_ask() -> None:
    bucket, objects = block("S3AuditorBucket")
    asked = {*actions.BUCKET_CALLS.values(), *actions.LISTING_CALLS.values()}
    # The policy is read in the bucket's own account only, and so are the tags for which it asks.
    assert set(bucket["Action"]) == asked - {"s3:GetBucketPolicy", "s3:GetBucketAbac", "s3:GetBucketTagging"}
    assert set(objects["Action"]) == {*actions.ACL_CALLS.values(), *actions.READ_CALLS.values()}


def test_the_trails_selector_is_one() -> None:
    selectors = block("FieldSelectors", page=NIGHTS)
    shape = botocore.session.Session().get_service_model("cloudtrail").operation_model("PutEventSelectors").input_shape
    given = {"TrailName": "trail", "AdvancedEventSelectors": selectors}
    assert not ParamValidator().validate(given, shape).has_errors()


def test_every_aws_command_exists() -> None:
    session = botocore.session.Session()
    for service, name in set(re.findall(r"\baws ([a-z0-9]+) ([a-z-]+)", PAGE + NIGHTS)) - NOT_OPERATIONS:
        operations = {xform_name(one, "-") for one in session.get_service_model(service).operation_names}
        assert name in operations, f"aws {service} {name}"


def run_merge(url: str, bucket: str, prefix: str = "") -> str:
    """The owner's command as the page has it, against a server on this machine."""
    (script,) = (found for found in re.findall(r"<<'PY'\n(.*?)\nPY\n", PAGE, re.DOTALL))
    more = {"AWS_ENDPOINT_URL": url, "BUCKET": bucket, "QUEUE_ARN": QUEUE_ARN, "PREFIX": prefix}
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [sys.executable, "-"], input=script, env={**os.environ, **more}, capture_output=True, text=True, check=True
    )
    return done.stdout


def configuration(s3: Any, bucket: str) -> dict[str, Any]:
    found: dict[str, Any] = s3.get_bucket_notification_configuration(Bucket=bucket)
    found.pop("ResponseMetadata")
    return found


@pytest.fixture
def owner(moto_url: str) -> Iterator[Any]:
    """The bucket owner's S3, where a queue for our notifications and one of their own exist."""
    sqs = client("sqs", moto_url)
    for name in ("s3-auditor-prod-notifications", "theirs"):
        sqs.create_queue(QueueName=name)
    sqs.close()
    s3 = client("s3", moto_url)
    yield s3
    s3.close()


def test_the_owners_command_keeps_what_is_there_and_comes_to_the_same_when_repeated(moto_url: str, owner: Any) -> None:
    owner.create_bucket(Bucket="configured")
    theirs = {"Id": "theirs", "QueueArn": QUEUE_ARN.rpartition(":")[0] + ":theirs", "Events": ["s3:ObjectTagging:*"]}
    before = {"QueueConfigurations": [theirs], "EventBridgeConfiguration": {}}
    owner.put_bucket_notification_configuration(Bucket="configured", NotificationConfiguration=before)
    before = configuration(owner, "configured")
    for _ in range(2):
        assert run_merge(moto_url, "configured", "photos/") == "1 other queue configurations kept\n"
    after = configuration(owner, "configured")
    kept, ours = after.pop("QueueConfigurations")
    assert [kept] == before.pop("QueueConfigurations")
    assert after == before
    assert (ours["Id"], ours["QueueArn"]) == ("s3-auditor", QUEUE_ARN)
    (rule,) = ours["Filter"]["Key"]["FilterRules"]
    assert rule["Value"] == "photos/"


def events_that_do_something() -> set[str]:
    """S3's own names in the table of events, of the rows with an action."""
    rows = NOTIFICATIONS.partition("| S3 Event Notifications |")[2].partition("\n\n")[0].splitlines()
    done = [row for row in rows if not re.search("ignored, with|warning|nothing to do", row)]
    return {f"s3:{name}" for row in done for name in quoted(row.strip("| ").partition(" | ")[0]) if ":" in name}


def test_the_owners_command_asks_for_what_the_worker_takes_and_nothing_else(moto_url: str, owner: Any) -> None:
    owner.create_bucket(Bucket="asking")
    run_merge(moto_url, "asking")
    (ours,) = configuration(owner, "asking")["QueueConfigurations"]
    assert (ours["QueueArn"], "Filter" in ours) == (QUEUE_ARN, False)
    documented = events_that_do_something()
    assert {"s3:ObjectCreated:*", "s3:ObjectRemoved:Delete", "s3:ObjectRestore:Completed"} <= documented
    for name in documented:
        assert [pattern for pattern in ours["Events"] if fnmatchcase(name, pattern)], name
    for pattern in ours["Events"]:
        assert [name for name in documented if fnmatchcase(name, pattern)], pattern
