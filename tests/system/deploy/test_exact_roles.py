"""Each role allows exactly the calls that its function makes: one action too many or too few fails a test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import parse_qs

import pytest

from auditor.lambdas.audit import AuditFunction
from auditor.lambdas.hashing import HashingFunction
from auditor.lambdas.invocation_frame import FunctionContext
from auditor.lambdas.verify import VerifyFunction
from auditor.ledger.dynamodb.ledger import create_table
from auditor.model.alert import RunEvent, failure_alert
from tests.lambdas.test_hashing import as_record
from tests.support.servers.forwarding import Forwarding
from tests.support.servers.stub_calls import understand
from tests.system.deploy.checks.accounts import AUDITED, empty_account
from tests.system.deploy.checks.accounts import Account as Made
from tests.system.deploy.checks.packaged import needs_osls, stack_of, statements
from tests.system.deploy.checks.sources import LEVELS, as_list

pytestmark = needs_osls
Asked = set[tuple[str, str]]
"""A place, which is a bucket's name or a service's, and an IAM action."""

OTHER_NAMES: Final = {
    "HeadBucket": "ListBucket",
    "ListObjectsV2": "ListBucket",
    "ListObjectVersions": "ListBucketVersions",
    "ListBuckets": "ListAllMyBuckets",
    "GetPublicAccessBlock": "GetBucketPublicAccessBlock",
    "GetBucketEncryption": "GetEncryptionConfiguration",
    "HeadObject": "GetObject",
    "SendMessageBatch": "SendMessage",
    "TransactWriteItems": "UpdateItem",
}
"""Of calls whose action has another name (Service Authorization Reference)."""

OF_VERSIONS: Final = {"GetObject": "GetObjectVersion", "GetObjectAcl": "GetObjectVersionAcl"}

LAMBDAS_OWN: Final = ("Failures", "Logs", "Network")
"""Statements of what Lambda does as the function."""

NOT_SEEN: Final = {
    ("s3", "s3:GetAccountPublicAccessBlock"),  # asked of AWS alone, not of a server at an endpoint of one's own
    ("s3", "s3:ListAccessPoints"),
    ("s3", "s3:GetAccessPoint"),
    ("s3", "s3:GetAccessPointPolicy"),
    ("s3", "s3:GetAccessPointPolicyStatus"),
    ("s3", "s3:ListAccessGrantsInstances"),
    ("s3", "s3:ListAccessGrants"),
    ("s3", "s3:GetAccessGrantsInstanceResourcePolicy"),
    (AUDITED, "s3:GetBucketAbac"),  # asked only where a condition of the bucket policy tests the bucket's tags
    (AUDITED, "s3:GetBucketTagging"),
    ("sqs", "sqs:DeleteMessage"),  # the other three are Lambda's, which polls the queues as the function
    ("sqs", "sqs:GetQueueAttributes"),
    ("sqs", "sqs:ReceiveMessage"),
}


CHANNELS: Final = (
    "chatTopic=arn:aws:sns:us-east-1:123456789012:chat eventBus=arn:aws:events:us-east-1:123456789012:event-bus/ours"
)
"""The channels of a deployment besides its topic."""


class Recording(Forwarding):
    """asked_for: of all that went through. objects: action and ARN of each call on S3 that has one."""

    def __init__(self, behind: str) -> None:
        super().__init__(behind)
        self.asked_for: Asked = set()
        self.objects: Asked = set()

    def forget(self) -> None:
        self.asked_for.clear()
        self.objects.clear()

    def asked(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        service = headers["authorization"].split("/")[3]
        place, name = service, headers.get("x-amz-target", "").rpartition(".")[2]
        if service == "s3":
            call = understand(method, target, headers)
            name = (
                call.operation if method in ("GET", "HEAD") else {"PUT": "PutObject", "DELETE": "DeleteObject"}[method]
            )
            name = OTHER_NAMES.get(name, name)
            name = OF_VERSIONS.get(name, name) if call.version_id else name
            place = call.bucket or service
            if call.bucket:
                self.objects.add((f"s3:{name}", f"arn:aws:s3:::{call.bucket}{'/' if call.key else ''}{call.key or ''}"))
        elif not name:
            (name,) = parse_qs(body.decode())["Action"]
        if service != "sts":  # GetCallerIdentity takes no permission
            self.asked_for.add((place, f"{service}:{OTHER_NAMES.get(name, name)}"))


@dataclass(frozen=True)
class Account(Made):
    """recording: of the functions' calls; those of client() are not seen."""

    recording: Recording

    def of_role(self, role: str) -> list[dict[str, Any]]:
        """The statements of the role's own policy, and those of the made reports bucket's policy for it."""
        principal = {"AWS": self.stack.arn_of(role)}
        given = self.resources["ReportsBucketPolicy"]["Properties"]["PolicyDocument"]["Statement"]
        own = statements(self.resources, role).values()
        return [*own, *(one for one in given if one["Principal"] == principal)]

    def allowed(self, role: str) -> Asked:
        """All that the role is allowed, and that can be seen here."""
        found = set()
        for one in self.of_role(role):
            if one["Effect"] != "Allow" or one["Sid"] in LAMBDAS_OWN:
                continue
            for resource in as_list(one["Resource"]):
                bucket = resource.partition(":s3:::")[2].partition("/")[0]
                found |= {(bucket or action.partition(":")[0], action) for action in as_list(one["Action"])}
        return found

    def refused(self, role: str) -> Asked:
        """The calls on buckets and objects that the role's statements deny, or do not allow: by ARN."""
        return {call for call in self.recording.objects if self._effects(role, *call) != {"Allow"}}

    def _effects(self, role: str, action: str, arn: str) -> set[str]:
        found = set()
        for one in self.of_role(role):
            named = any(fnmatchcase(arn, pattern) for pattern in as_list(one.get("Resource", one.get("NotResource"))))
            if action in as_list(one["Action"]) and named == ("Resource" in one):
                found.add(one["Effect"])
        return found


@pytest.fixture
async def account(
    moto_url: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Account]:
    level, *given = getattr(request, "param", "fixity").split()
    made = await empty_account(moto_url, stack_of(level, f"buckets={AUDITED}", *given))
    made.client("sns").create_topic(Name="chat")
    made.client("events").create_event_bus(Name="ours")
    s3 = made.client("s3")
    s3.put_bucket_versioning(Bucket=AUDITED, VersioningConfiguration={"Status": "Enabled"})
    for key in ("a", "b", "c"):
        s3.put_object(Bucket=AUDITED, Key=key, Body=key.encode())
    s3.put_object(Bucket=AUDITED, Key="known", Body=b"known", ChecksumAlgorithm="SHA256")
    with Recording(moto_url) as recording:
        monkeypatch.setenv("AWS_ENDPOINT_URL", recording.url)
        yield Account(made.url, made.stack, made.resources, recording)


def around(seconds: float = 600.0) -> FunctionContext:
    return FunctionContext(seconds_left=seconds, emit=lambda line: None)


async def tell_and_hand_on(account: Account, function: str) -> None:
    """What a function does when it has found something, and when its time is over; its last execution was stopped."""
    lambdas = SimpleNamespace(get_remaining_time_in_millis=lambda: 600_000)
    context = FunctionContext.of(lambdas, account.variables(function))
    await context.channels.tell(failure_alert("audit", "a hole"), RunEvent("Tested", {}))
    assert context.machine is not None
    stopped = await context.machine.start("start", {})
    account.client("stepfunctions").stop_execution(executionArn=stopped)
    assert await context.machine.start("start", {}) != stopped


@pytest.mark.parametrize("account", [*LEVELS, f"metadata {CHANNELS}"], indirect=True)
async def test_the_audits_role_allows_what_the_audit_asks_for(account: Account) -> None:
    service = AuditFunction(account.variables("AuditLambdaFunction"))
    await service.handle({}, around())
    await service.handle({"bucket": AUDITED, "versions": True}, around())
    (part,) = (await service.handle({"bucket": AUDITED, "max_calls": 14}, around()))["runs"]
    assert not part["complete"]
    leave_a_part(account, part["run"])
    await service.handle({"bucket": AUDITED, "run": part["run"]}, around())
    await tell_and_hand_on(account, "AuditLambdaFunction")
    assert account.recording.asked_for == account.allowed("AuditRole") - NOT_SEEN
    assert account.refused("AuditRole") == set()
    assert account.refused("ScheduleRole") == account.recording.objects, "it has none of these rights"


@pytest.mark.parametrize("account", [f"{level} keyPolicies=true" for level in LEVELS[1:]], indirect=True)
async def test_the_audits_role_allows_to_read_key_policies_where_they_are_read(account: Account) -> None:
    key = account.client("kms").create_key()["KeyMetadata"]["Arn"]
    account.client("s3").put_object(Bucket=AUDITED, Key="d", Body=b"d", ServerSideEncryption="aws:kms", SSEKMSKeyId=key)
    service = AuditFunction(account.variables("AuditLambdaFunction"))
    await service.handle({}, around())
    seen = {call for call in account.recording.asked_for if call[0] == "kms"}
    assert seen == {call for call in account.allowed("AuditRole") if call[0] == "kms"} == {("kms", "kms:GetKeyPolicy")}


def leave_a_part(account: Account, run: str) -> None:
    """As a killed run does: its checkpoint does not name it, and who goes on with the run removes it."""
    parts = f"audits/bucket={AUDITED}/run={run}/objects/part-00000-"
    account.client("s3").put_object(Bucket=account.reports, Key=f"{parts}00001.jsonl.gz", Body=b"half of it")


async def hash_all(account: Account) -> None:
    """What audits have sent; and a message that is malformed, with the dead letters' queue and without it."""
    variables = account.variables("HashingLambdaFunction")
    sqs = account.client("sqs")
    messages = sqs.receive_message(QueueUrl=variables["AUDITOR_QUEUE"], MaxNumberOfMessages=10, AttributeNames=["All"])[
        "Messages"
    ]
    poison = {"MessageId": "poison", "ReceiptHandle": "none", "Body": "malformed", "Attributes": {}}
    service = HashingFunction(variables)
    try:
        await service.handle({"Records": [as_record(one) for one in [*messages, poison]]})
        sqs.delete_queue(QueueUrl=variables["AUDITOR_DEAD_LETTER_QUEUE"])
        await service.handle({"Records": [as_record(poison)]})
    finally:
        await service.close()


async def test_the_hashing_role_allows_what_the_worker_asks_for(account: Account) -> None:
    service = AuditFunction(account.variables("AuditLambdaFunction"))
    await service.handle({}, around())
    await service.handle({"bucket": AUDITED, "versions": True}, around())
    ledger = account.stack.resolve({"Ref": "Ledger"})
    account.client("dynamodb").delete_table(TableName=ledger)
    await create_table(ledger)  # so that the worker is the first to write
    account.recording.forget()
    await hash_all(account)
    assert account.recording.asked_for == account.allowed("HashingRole") - NOT_SEEN
    assert account.refused("HashingRole") == set()


@pytest.mark.parametrize("account", ["fixity", f"fixity {CHANNELS}"], indirect=True)
async def test_the_verifying_role_allows_what_verifying_asks_for(account: Account) -> None:
    service = VerifyFunction(account.variables("VerifyLambdaFunction"))
    await service.handle({"bucket": AUDITED, "max_age": "1d"}, around())
    asked_of_a_new_table = {*account.recording.asked_for}
    await AuditFunction(account.variables("AuditLambdaFunction")).handle(
        {"bucket": AUDITED, "versions": True}, around()
    )
    await hash_all(account)
    account.recording.forget()
    s3 = account.client("s3")
    (version, *_) = s3.list_object_versions(Bucket=AUDITED, Prefix="b")["Versions"]
    s3.delete_object(Bucket=AUDITED, Key="b", VersionId=version["VersionId"])
    for versions in (False, True):
        await service.handle({"bucket": AUDITED, "versions": versions, "max_age": "1d"}, around())
    await tell_and_hand_on(account, "VerifyLambdaFunction")
    # Without it S3 answers 403 and not 404 when a report is not there.
    missing = {(account.reports, "s3:ListBucket")}
    asked = account.recording.asked_for | asked_of_a_new_table | missing
    assert asked == account.allowed("VerifyRole") - NOT_SEEN
    assert account.refused("VerifyRole") == set()
