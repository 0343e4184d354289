"""The packaged roles, enforced: each call of the handlers is allowed, and a write to the audited bucket is not.

moto checks IAM for real, but names a resource for S3 only (elsewhere it asks for "*"), asks for an action of its own at
HeadBucket, takes no bucket policy for a permission, and knows no Requester Pays; what it gets wrong there says nothing
of the roles.
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

from auditor.aws.publish import SnsTopic
from auditor.errors import OutputError
from auditor.lambdas.audit import AuditFunction
from auditor.lambdas.context import FunctionContext
from auditor.lambdas.hashing import HashingFunction
from auditor.ledger.dynamodb.ledger import create_table
from deploy.resolving import Stack
from tests.lambdas.test_hashing import as_record
from tests.system.deploy.checks.packaged import needs_osls, template
from tests.system.deploy.checks.sources import LEVELS

pytestmark = needs_osls
AUDITED = "photos"
OBJECTS = {"a.txt": b"a", "b/c.txt": b"c", "d e+%.txt": b"d"}


@dataclass(frozen=True)
class Account:
    """An account on moto's server with the stack in it. resources: the stack's, resolved. reports: a bucket's name."""

    url: str
    resources: dict[str, Any]
    reports: str
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
    """The policy with "*" for the resources of every service but S3, and SQS's batch an action of its own.

    A statement on S3 with NotResource is left out, because moto takes it for an Allow of everything.
    """
    statements = [
        one if "s3:" in json.dumps(one["Action"]) else {**one, "Resource": "*"}
        for one in document["Statement"]
        if "NotResource" not in one or "s3:" not in json.dumps(one["Action"])
    ]
    text = json.dumps({**document, "Statement": statements})
    text = text.replace('"sqs:SendMessage"', '["sqs:SendMessage", "sqs:SendMessageBatch"]')
    return text.replace('"dynamodb:UpdateItem"', '"dynamodb:UpdateItem", "dynamodb:TransactWriteItems"')


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def let_in(stack: Stack) -> list[dict[str, Any]]:
    """What the made reports bucket's policy allows the audit's role, as statements of the role's own.

    Within one account AWS takes an Allow of either policy for enough (IAM User Guide, policy evaluation logic); moto
    asks a signed caller for one of its own.
    """
    policy = stack.resources().get("ReportsBucketPolicy", {"Properties": {"PolicyDocument": {"Statement": []}}})
    role = {"AWS": stack.arn_of("AuditRole")}
    found = [one for one in policy["Properties"]["PolicyDocument"]["Statement"] if one["Principal"] == role]
    return [{name: value for name, value in one.items() if name != "Principal"} for one in found]


@pytest.fixture
def given() -> dict[str, str]:
    """Parameters of the stack."""
    return {}


@pytest.fixture
async def account(moto_url: str, level: str, given: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Account:
    tell(moto_url, "reset")
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    made = template("--stage", "prod", "--param", f"buckets={AUDITED}", "--param", f"level={level}")
    stack = Stack(made, region="us-east-1", parameters=given)
    resources = stack.resources()
    out = resources["AuditLambdaFunction"]["Properties"]["Environment"]["Variables"]["AUDITOR_OUT"]
    reports = out.removeprefix("s3://").partition("/")[0]
    fill(moto_url, reports)
    for one in resources.values():
        if one["Type"] == "AWS::SQS::Queue":
            boto3.client("sqs").create_queue(QueueName=one["Properties"]["QueueName"])
    boto3.client("sns").create_topic(Name=resources["AlertTopic"]["Properties"]["TopicName"])
    if level == "fixity":
        await create_table(stack.resolve({"Ref": "Ledger"}))
    more = {"AuditRole": let_in(stack), "HashingRole": []}
    identities = {name: credentials(name, resources[name], more[name]) for name in more.keys() & resources.keys()}

    def become(role: str) -> None:
        for name, value in identities[role].items():
            monkeypatch.setenv(name, value)

    return Account(moto_url, resources, reports, become)


def fill(url: str, reports: str) -> None:
    s3 = boto3.client("s3", endpoint_url=url)
    s3.create_bucket(Bucket=AUDITED)
    s3.create_bucket(Bucket=reports)
    for key, data in OBJECTS.items():
        s3.put_object(Bucket=AUDITED, Key=key, Body=data)
    s3.put_object(Bucket=reports, Key="elsewhere/plan.txt", Body=b"none of ours")


def credentials(name: str, role: dict[str, Any], more: list[dict[str, Any]]) -> dict[str, str]:
    """Of a role that is made of this one, and of the statements that other policies have for it."""
    iam = boto3.client("iam")
    trust = json.dumps(role["Properties"]["AssumeRolePolicyDocument"])
    arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    documents = {one["PolicyName"]: one["PolicyDocument"] for one in role["Properties"]["Policies"]}
    if more:
        documents["of-buckets"] = {"Version": "2012-10-17", "Statement": more}
    for title, document in documents.items():
        iam.put_role_policy(RoleName=name, PolicyName=title, PolicyDocument=as_moto_asks(document))
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
    service = AuditFunction(account.variables("AuditLambdaFunction"))
    lines: list[str] = []
    done = await service.handle({}, FunctionContext(seconds_left=600.0, emit=lines.append))
    (summary,) = done["runs"]
    return dict(summary)


async def test_the_audit_reads_everything_that_its_level_asks(enforced: Account, level: str) -> None:
    summary = await audited(enforced)
    assert summary["complete"]
    assert summary["coverage"]["audited"] == len(OBJECTS)
    assert summary["rules_undecided"] == []
    assert summary["calls"]["head"] == (0 if level == "exposure" else len(OBJECTS))
    assert (summary["hashing"] or {}).get("queued") == (len(OBJECTS) if level == "fixity" else None)


async def test_the_audit_can_tell_of_a_hole(enforced: Account) -> None:
    await SnsTopic(enforced.variables("AuditLambdaFunction")["AUDITOR_TOPIC"]).publish("S3 audit", "a hole")


def test_the_audit_cannot_change_what_it_audits(enforced: Account) -> None:
    s3 = enforced.client("s3")
    assert refused(s3.put_object, Bucket=AUDITED, Key="new", Body=b"")
    assert refused(s3.put_object_acl, Bucket=AUDITED, Key="a.txt", ACL="public-read")
    assert refused(s3.delete_object, Bucket=AUDITED, Key="a.txt")
    assert refused(s3.put_bucket_policy, Bucket=AUDITED, Policy="{}")
    assert refused(s3.put_object, Bucket=enforced.reports, Key="elsewhere/new", Body=b"")
    assert not refused(s3.put_object, Bucket=enforced.reports, Key="audits/new", Body=b"")


async def test_of_the_reports_bucket_the_audit_reads_its_run_folders_alone(enforced: Account) -> None:
    await audited(enforced)
    s3 = enforced.client("s3")
    assert not refused(s3.get_object, Bucket=enforced.reports, Key=f"audits/bucket={AUDITED}/latest.json")
    assert refused(s3.get_object, Bucket=enforced.reports, Key="elsewhere/plan.txt")
    await audited(enforced)


@pytest.mark.parametrize("level", ["exposure"], indirect=True)
@pytest.mark.parametrize("given", [{"ReportsBucketName": "reports-of-ours"}])
async def test_a_given_reports_bucket_that_lets_the_role_read_nothing_ends_the_audit_in_a_sentence(
    enforced: Account,
) -> None:
    with pytest.raises(OutputError, match=r"s3://reports-of-ours/audits/.* refuses GetObject .* allow s3:GetObject"):
        await audited(enforced)
    enforce(enforced.url, "inf")
    s3 = enforced.client("s3")
    left = s3.list_objects_v2(Bucket="reports-of-ours", Prefix="audits/")["Contents"]
    assert [one["Key"] for one in left] == ["audits/index.html"]
    page = s3.get_object(Bucket="reports-of-ours", Key="audits/index.html")["Body"].read().decode()
    assert "not audited" in page
    assert "refuses GetObject" in page


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
    service = HashingFunction(variables)
    try:
        done = await service.handle({"Records": [as_record(one) for one in [*messages["Messages"], poison]]})
    finally:
        await service.close()
    assert done == {"batchItemFailures": []}
    enforce(enforced.url, "inf")
    items = enforced.client("dynamodb").scan(TableName=variables["AUDITOR_LEDGER"].partition(":")[2])["Items"]
    assert len([one for one in items if "hashed_at" in one]) == len(OBJECTS)  # the digests
    letters = sqs.receive_message(QueueUrl=variables["AUDITOR_DEAD_LETTER_QUEUE"])["Messages"]
    assert [one["Body"] for one in letters] == ["malformed"]
    enforce(enforced.url, "0")
    s3 = enforced.client("s3")
    assert refused(s3.put_object, Bucket=AUDITED, Key="a.txt", Body=b"")
    assert refused(s3.delete_object, Bucket=AUDITED, Key="a.txt")
    assert refused(s3.get_object_acl, Bucket=AUDITED, Key="a.txt")
