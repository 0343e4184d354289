"""The packaged roles, enforced: each call of the handlers is allowed, and a write to the audited bucket is not.

moto checks IAM for real, but names a resource for S3 only (elsewhere it asks for "*"), asks for an action of its own at
HeadBucket, and knows no Requester Pays; what it gets wrong there says nothing of the roles.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from auditor.alerts import SnsTopic, alert
from auditor.invocation import AuditService, Surroundings
from auditor.ledgers.dynamodb import create_table
from auditor.service import HashingService
from tests.deploy.checks.packaged import needs_osls, template
from tests.deploy.checks.resolving import Stack
from tests.deploy.checks.sources import LEVELS
from tests.test_handler_hashing import as_record

pytestmark = needs_osls
AUDITED, REPORTS = "photos", "reports-of-ours"
OBJECTS = {"a.txt": b"a", "b/c.txt": b"c", "d e+%.txt": b"d"}


@dataclass(frozen=True)
class Account:
    """An account on moto's server with the stack's things in it. resources: the stack's, resolved."""

    url: str
    resources: dict[str, Any]
    become: Callable[[str], None]

    def variables(self, function: str) -> dict[str, str]:
        found: dict[str, str] = self.resources[function]["Properties"]["Environment"]["Variables"]
        return found

    def client(self, service: str) -> Any:
        return boto3.Session().client(service, endpoint_url=self.url)  # the default session keeps its credentials


def tell(url: str, path: str, data: str = "") -> None:
    """One of moto's own calls."""
    # Werkzeug would take a body without a type for a form, and moto then sees none.
    request = urllib.request.Request(f"{url}/moto-api/{path}", data.encode(), {"Content-Type": "text/plain"})
    urllib.request.urlopen(request).close()


def enforce(url: str, after: str) -> None:
    """after: how many calls are let through unchecked from now on; "inf" for all."""
    tell(url, "reset-auth", after)


def as_moto_asks(document: dict[str, Any]) -> str:
    """The policy with "*" for the resources of every service but S3, and SQS's batch an action of its own."""
    statements = [
        one if "s3:" in json.dumps(one["Action"]) else {**one, "Resource": "*"} for one in document["Statement"]
    ]
    return json.dumps({**document, "Statement": statements}).replace(
        '"sqs:SendMessage"', '["sqs:SendMessage", "sqs:SendMessageBatch"]'
    )


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def account(moto_url: str, level: str, monkeypatch: pytest.MonkeyPatch) -> Account:
    tell(moto_url, "reset")
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    made = template("--stage", "prod", "--param", f"buckets={AUDITED}", "--param", f"level={level}")
    stack = Stack(made, region="us-east-1", parameters={"ReportsBucketName": REPORTS})
    resources = stack.resources()
    fill(moto_url)
    for one in resources.values():
        if one["Type"] == "AWS::SQS::Queue":
            boto3.client("sqs").create_queue(QueueName=one["Properties"]["QueueName"])
    boto3.client("sns").create_topic(Name=resources["AlertTopic"]["Properties"]["TopicName"])
    if level == "fixity":
        await create_table(stack.resolve({"Ref": "Ledger"}))
    identities = {
        name: credentials(name, one) for name, one in resources.items() if name in ("AuditRole", "HashingRole")
    }

    def become(role: str) -> None:
        for name, value in identities[role].items():
            monkeypatch.setenv(name, value)

    return Account(moto_url, resources, become)


def fill(url: str) -> None:
    s3 = boto3.client("s3", endpoint_url=url)
    s3.create_bucket(Bucket=AUDITED)
    s3.create_bucket(Bucket=REPORTS)
    for key, data in OBJECTS.items():
        s3.put_object(Bucket=AUDITED, Key=key, Body=data)


def credentials(name: str, role: dict[str, Any]) -> dict[str, str]:
    iam = boto3.client("iam")
    trust = json.dumps(role["Properties"]["AssumeRolePolicyDocument"])
    arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    for policy in role["Properties"]["Policies"]:
        iam.put_role_policy(
            RoleName=name, PolicyName=policy["PolicyName"], PolicyDocument=as_moto_asks(policy["PolicyDocument"])
        )
    made = boto3.client("sts").assume_role(RoleArn=arn, RoleSessionName="function")["Credentials"]
    return {
        "AWS_ACCESS_KEY_ID": made["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": made["SecretAccessKey"],
        "AWS_SESSION_TOKEN": made["SessionToken"],
    }


@pytest.fixture
def enforced(account: Account) -> Iterator[Account]:
    account.become("AuditRole")
    enforce(account.url, "0")
    yield account
    enforce(account.url, "inf")


def refused(call: Callable[..., Any], **arguments: Any) -> bool:
    try:
        call(**arguments)
    except ClientError as error:
        return error.response["Error"]["Code"] in ("AccessDenied", "403", "AccessDeniedException")
    return False


async def audited(account: Account) -> dict[str, Any]:
    service = AuditService(account.variables("AuditLambdaFunction"))
    lines: list[str] = []
    done = await service.handle({}, Surroundings(seconds_left=600.0, emit=lines.append))
    (summary,) = done["runs"]
    return dict(summary)


async def test_the_audit_reads_everything_that_its_level_asks(enforced: Account, level: str) -> None:
    summary = await audited(enforced)
    assert summary["complete"]
    assert summary["coverage"]["audited"] == len(OBJECTS)
    assert summary["rules_undecided"] == []
    assert (summary["calls"]["head"] > 0) == (level != "exposure")
    assert (summary["hashing"] or {}).get("queued") == (len(OBJECTS) if level == "fixity" else None)


async def test_the_audit_can_tell_of_a_hole(enforced: Account) -> None:
    await alert(SnsTopic(enforced.variables("AuditLambdaFunction")["AUDITOR_TOPIC"]), "a hole")


def test_the_audit_cannot_change_what_it_audits(enforced: Account) -> None:
    s3 = enforced.client("s3")
    assert refused(s3.put_object, Bucket=AUDITED, Key="new", Body=b"")
    assert refused(s3.put_object_acl, Bucket=AUDITED, Key="a.txt", ACL="public-read")
    assert refused(s3.delete_object, Bucket=AUDITED, Key="a.txt")
    assert refused(s3.put_bucket_policy, Bucket=AUDITED, Policy="{}")
    assert refused(s3.put_object, Bucket=REPORTS, Key="elsewhere/new", Body=b"")
    assert not refused(s3.put_object, Bucket=REPORTS, Key="audits/new", Body=b"")


def test_contents_are_read_at_every_level_but_exposure(enforced: Account, level: str) -> None:
    s3 = enforced.client("s3")
    assert refused(s3.get_object, Bucket=AUDITED, Key="a.txt") == (level == "exposure")
    assert refused(s3.head_object, Bucket=AUDITED, Key="a.txt") == (level == "exposure")


@pytest.mark.parametrize("level", ["fixity"], indirect=True)
async def test_the_worker_hashes_what_the_audit_sent_and_writes_nothing_else(enforced: Account) -> None:
    await audited(enforced)
    enforced.become("HashingRole")
    variables = enforced.variables("HashingLambdaFunction")
    sqs = enforced.client("sqs")
    messages = sqs.receive_message(QueueUrl=variables["AUDITOR_QUEUE"], MaxNumberOfMessages=10, AttributeNames=["All"])
    poison = {"MessageId": "poison", "ReceiptHandle": "none", "Body": "malformed", "Attributes": {}}
    service = HashingService(variables)
    try:
        done = await service.handle({"Records": [as_record(one) for one in [*messages["Messages"], poison]]})
    finally:
        await service.close()
    assert done == {"batchItemFailures": []}
    enforce(enforced.url, "inf")
    items = enforced.client("dynamodb").scan(TableName=variables["AUDITOR_LEDGER"].partition(":")[2])["Items"]
    assert len(items) == len(OBJECTS)
    letters = sqs.receive_message(QueueUrl=variables["AUDITOR_DEAD_LETTER_QUEUE"])["Messages"]
    assert [one["Body"] for one in letters] == ["malformed"]
    enforce(enforced.url, "0")
    s3 = enforced.client("s3")
    assert refused(s3.put_object, Bucket=AUDITED, Key="a.txt", Body=b"")
    assert refused(s3.delete_object, Bucket=AUDITED, Key="a.txt")
    assert refused(s3.get_object_acl, Bucket=AUDITED, Key="a.txt")
