"""Write the IAM policies of the deployed Lambda functions' roles. The deployment template has the same statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct

from auditor.errors import UsageError
from auditor.model.target import Target
from auditor.offline.iam import actions
from auditor.offline.iam.policy import (
    Arns,
    bucket_arns,
    channel_statements,
    document,
    inventory_statements,
    object_arns,
    statement,
    statements,
    store_statements,
    table_of,
)

SERVICE: Final = "s3-auditor"
"""The first part of the names of the stack and its resources; `-STAGE` is the second."""
STAGE: Final = "prod"
LEVEL: Final = "metadata"
"""The default stage and level of a deployment."""


class Deployment(Struct, frozen=True, kw_only=True):
    """The parameters of a deployment of the Lambda functions."""

    stage: str = STAGE
    level: str | None = None
    """exposure, metadata or fixity; None for LEVEL."""
    out: str = ""
    """The place of the reports: `s3://BUCKET[/PREFIX]`."""
    ledger: str | None = None
    """The URI of the ledger, `dynamodb:TABLE`; None for no ledger."""
    topic: str | None = None
    """The ARN of the SNS topic for alerts; None for the stack's own topic."""
    chat_topic: str | None = None
    """The ARN of the SNS topic for chat applications; None if there is none."""
    event_bus: str | None = None
    """The ARN of the event bus; None if there is none."""
    audited_keys: Sequence[str] = ()
    """ARNs of the KMS keys of the audited objects."""
    key_policies: bool = False
    """True if audits read the policies of these keys, or of all keys if none are named."""
    reports_key: str | None = None
    """ARN of the KMS key of the reports bucket, the queues, the topic, the ledger and the logs."""
    inventory: str | None = None
    """The place of the reports of S3 Inventory: `s3://BUCKET[/PREFIX]`; None if audits read none."""
    inventory_key: str | None = None
    """ARN of the KMS key of these reports; None if they are not under SSE-KMS."""
    in_vpc: bool = False
    """True if the functions run in a VPC."""
    file_system: str | None = None
    """ARN of the access point of a shared file system (EFS) that the functions mount; None if there is none."""

    def named(self, thing: str) -> str:
        return f"{SERVICE}-{self.stage}-{thing}"


Statement = dict[str, Any]


def audit_role_policy(targets: Sequence[Target], deployment: Deployment, partition: str) -> dict[str, Any]:
    """Return the IAM policy of the audit function's role.

    Raises UsageError if the reports bucket is missing, if the ledger is missing at the level fixity, or if key policies
    are wanted at the level exposure.
    """
    arns, level = Arns(partition), deployment.level or LEVEL
    queue = [arns.queue(deployment.named("hash"))]
    reports = _reports(deployment, arns, actions.STORE_WRITES if level == "exposure" else actions.STORE_OBJECT_CALLS)
    return document(
        *_read_facts(targets, deployment, arns),
        *(_denials(deployment, arns) if level == "exposure" else ()),
        *reports,
        *_inventory(deployment, arns, reads=level != "exposure"),
        *statements("Queue", [actions.QUEUE_CALLS["SendMessageBatch"]], queue if level == "fixity" else ()),
        *([_ledger(deployment, arns, *actions.LEDGER_READS, *actions.LEDGER_WRITES)] if level == "fixity" else ()),
        *_own_invocations(deployment, arns),
        *_lambda("audit", deployment, arns),
    )


def hashing_role_policy(targets: Sequence[Target], deployment: Deployment, partition: str) -> dict[str, Any]:
    """Return the IAM policy of the hashing worker's role.

    Raises UsageError if the ledger is missing, or if the deployment names another level than fixity: only fixity has a
    worker.
    """
    if deployment.level not in (None, "fixity"):
        raise UsageError(f"there is no hashing worker at level {deployment.level}: use --level fixity")
    arns = Arns(partition)
    queues = {name: arns.queue(deployment.named(name)) for name in ("hash", "notifications", "dead-letters")}
    received = [actions.QUEUE_CALLS["ChangeMessageVisibility"], *actions.POLLING]
    return document(
        statement("Bucket", [actions.BUCKET_CALLS["HeadBucket"]], bucket_arns(targets, arns)),
        statement("Objects", actions.READ_CALLS.values(), object_arns(targets, arns)),
        *statements("Keys", actions.AUDITED_KEYS, deployment.audited_keys),
        *statements("StackKey", actions.REPORTS_KEY, [deployment.reports_key]),
        statement("Received", received, [queues["hash"], queues["notifications"]]),
        statement("Sent", [actions.QUEUE_CALLS["SendMessageBatch"]], [queues["hash"], queues["dead-letters"]]),
        _ledger(deployment, arns, *actions.LEDGER_READS, *actions.LEDGER_WRITES),
        *_lambda("hashing", deployment, arns),
    )


def verify_role_policy(targets: Sequence[Target], deployment: Deployment, partition: str) -> dict[str, Any]:
    """Return the IAM policy of the verify function's role.

    Raises UsageError if the reports bucket or the ledger is missing, or if the deployment names another level than
    fixity: only fixity has verifications.
    """
    if deployment.level not in (None, "fixity"):
        raise UsageError(f"nothing is verified at level {deployment.level}: use --level fixity")
    arns = Arns(partition)
    return document(
        statement("Bucket", actions.LISTING_CALLS.values(), bucket_arns(targets, arns)),
        statement("Objects", actions.READ_CALLS.values(), object_arns(targets, arns)),
        *statements("Keys", actions.AUDITED_KEYS, deployment.audited_keys),
        *_reports(deployment, arns, actions.REPORT_CALLS),
        _ledger(deployment, arns, *actions.LEDGER_WRITES, *actions.VERIFY_READS),
        *_own_invocations(deployment, arns),
        *_lambda("verify", deployment, arns),
    )


def renew_role_policy(targets: Sequence[Target], deployment: Deployment, partition: str) -> dict[str, Any]:
    """Return the IAM policy of the renew function's role. It reads the run folders, and writes renewals alone.

    Raises UsageError if the reports bucket is missing, or if key policies are wanted at the level exposure.
    """
    arns, level = Arns(partition), deployment.level or LEVEL
    return document(
        *_read_facts(targets, deployment, arns),
        *([_no_contents([deployment.out], arns)] if level == "exposure" else ()),
        *_renewals(deployment, arns),
        *_files(deployment, arns),
        *statements("StackKey", actions.REPORTS_KEY, [deployment.reports_key]),
        statement("Received", actions.POLLING, [arns.queue(deployment.named("renewals"))]),
        statement(
            "Sent", [actions.QUEUE_CALLS["SendMessageBatch"]], [arns.queue(deployment.named("renewal-dead-letters"))]
        ),
        *channel_statements(_topics(deployment, arns), None, arns),
        *_lambda("renew", deployment, arns),
    )


def _read_facts(targets: Sequence[Target], deployment: Deployment, arns: Arns) -> list[Statement]:
    """Return the statements that let a function read the facts of objects and of their buckets."""
    exposure = (deployment.level or LEVEL) == "exposure"
    if deployment.key_policies and exposure:
        raise UsageError(
            "at the level exposure no HEAD names a key: use --key-policies with --level metadata or fixity"
        )
    on_buckets = [*actions.BUCKET_CALLS.values(), *actions.LISTING_CALLS.values()]
    on_objects = [*actions.ACL_CALLS.values(), *(() if exposure else actions.READ_CALLS.values())]
    keys = (deployment.audited_keys or ["*"]) if deployment.key_policies else ()
    return [
        statement("Account", actions.ACCOUNT_CALLS.values(), ["*"]),
        statement("Bucket", on_buckets, bucket_arns(targets, arns)),
        statement("Objects", on_objects, object_arns(targets, arns)),
        *statements("KeyPolicies", actions.KEY_POLICIES, keys),
    ]


def _topics(deployment: Deployment, arns: Arns) -> list[str]:
    """Return the ARNs of the topics for alerts."""
    topics = [deployment.topic or arns.anywhere("sns", deployment.named("alerts")), deployment.chat_topic]
    return [topic for topic in topics if topic]


def _own_invocations(deployment: Deployment, arns: Arns) -> list[Statement]:
    """Return the statements that let a function send alerts and events, queue events that failed, and leave work to the
    state machine.
    """
    name = deployment.named("audit")
    machine = [arns.anywhere("states", f"stateMachine:{name}"), arns.anywhere("states", f"execution:{name}:*")]
    return [
        *channel_statements(_topics(deployment, arns), deployment.event_bus, arns),
        statement("Failures", actions.ON_FAILURE, [arns.queue(deployment.named("audit-failures"))]),
        statement("Machine", actions.MACHINE_CALLS.values(), machine),
    ]


def _denials(deployment: Deployment, arns: Arns) -> list[Statement]:
    """Return the statements that forbid to read and decrypt objects, even if another policy allows it.

    The run folders, the reports of S3 Inventory and their KMS keys are excepted: their own policies may let the role
    read them.
    """
    keys = [key for key in (deployment.reports_key, deployment.inventory_key) if key]
    return [
        _no_contents([deployment.out, deployment.inventory or ""], arns),
        _denial("NoDecryption", ["kms:Decrypt"], keys),
    ]


def _no_contents(places: Sequence[str], arns: Arns) -> Statement:
    """Return the statement that forbids to read objects. places: `s3://BUCKET[/PREFIX]`, whose objects are excepted."""
    files = [
        one for place in places for found in store_statements("", (), place, arns)[1:] for one in found["Resource"]
    ]
    return _denial("NoContents", actions.READ_CALLS.values(), files)


def _denial(sid: str, denied: Iterable[str], excepted: Sequence[str]) -> Statement:
    """Return the statement that forbids actions. excepted: ARNs of the resources on which it leaves them alone."""
    on = {"NotResource": excepted} if excepted else {"Resource": ["*"]}
    return {"Sid": sid, "Effect": "Deny", "Action": list(denied), **on}


def _reports(deployment: Deployment, arns: Arns, calls: Sequence[str]) -> list[Statement]:
    """Return the statements on the reports bucket and its KMS key. calls: the actions that are allowed on the reports.

    If `calls` do not include reading, the role may not decrypt with the key either. To let it read reports all the
    same, the policies of the bucket and of the key must allow it.
    """
    _check_out(deployment)
    on_key = actions.REPORTS_KEY if {*actions.STORE_READS} <= {*calls} else actions.REPORTS_KEY_WRITES
    return [
        *store_statements("Reports", calls, deployment.out, arns),
        *_files(deployment, arns),
        *statements("StackKey", on_key, [deployment.reports_key]),
    ]


def _renewals(deployment: Deployment, arns: Arns) -> list[Statement]:
    """Return the statements that let the renew function read the run folders in the reports bucket, and write renewals
    beside them.
    """
    _check_out(deployment)
    found = store_statements("ReportsRead", actions.STORE_READS, deployment.out, arns)
    if not found:
        return []
    listing, reading = found
    (below,) = reading["Resource"]
    written = f"{below.removesuffix('*')}bucket=*/renewals/*"
    return [listing | {"Sid": "ReportsList"}, reading, statement("Renewals", actions.RENEWAL_WRITES, [written])]


def _check_out(deployment: Deployment) -> None:
    """Raise UsageError for a place of the reports that the functions cannot reach."""
    mounted = deployment.file_system is not None and deployment.out.startswith("/")
    if not mounted and not deployment.out.startswith("s3://"):
        raise UsageError(
            "the deployed audit writes to a bucket, or to a file system that it mounts: name it with --out"
            " s3://REPORTS/audits, or with --out /mnt/reports and --file-system ARN"
        )


def _inventory(deployment: Deployment, arns: Arns, *, reads: bool) -> list[Statement]:
    """Return the statements on the reports of S3 Inventory. reads: False if the role may only list them, so that the
    policies of their bucket and key must let it read them.
    """
    if not reads:
        return inventory_statements(deployment.inventory, (), arns)
    return [
        *inventory_statements(deployment.inventory, actions.STORE_READS, arns),
        *statements("InventoryKey", actions.INVENTORY_KEY, [deployment.inventory_key]),
    ]


def _files(deployment: Deployment, arns: Arns) -> list[Statement]:
    """Return the statement on the shared file system. IAM knows its actions on file systems, and the access point as a
    condition.
    """
    if deployment.file_system is None:
        return []
    allowed = statement("Files", actions.FILES, [arns.anywhere("elasticfilesystem", "file-system/*")])
    return [allowed | {"Condition": {"StringEquals": {"elasticfilesystem:AccessPointArn": deployment.file_system}}}]


def _ledger(deployment: Deployment, arns: Arns, *allowed: str) -> Statement:
    if (table := table_of(deployment.ledger)) is None:
        raise UsageError("the deployed ledger is a DynamoDB table: name it with --ledger dynamodb:TABLE")
    return statement("Ledger", allowed, [arns.table(table)])


def _lambda(function: str, deployment: Deployment, arns: Arns) -> list[Statement]:
    """Return the statements for calls that the Lambda service itself makes with the function's role."""
    group = arns.anywhere("logs", f"log-group:/aws/lambda/{deployment.named(function)}:*")
    network = [statement("Network", actions.NETWORK, ["*"])] if deployment.in_vpc else []
    return [statement("Logs", actions.LOGGING, [group]), *network]
