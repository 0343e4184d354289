"""The policies of the deployed functions' roles, statement for statement as the template has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from auditor import policies
from auditor.arns import Arns
from auditor.errors import UsageError
from auditor.policies import bucket_arns, document, object_arns, statement
from auditor.settings import Settings
from auditor.target import Target

SERVICE: Final = "s3-auditor"
"""What the stack and its things are called, with `-STAGE`."""
STAGE: Final = "prod"
LEVEL: Final = "metadata"
"""Stage and level of a deployment that names none."""

Statement = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What a deployment's roles follow from, beside its settings. topic: an ARN, None: the stack's own.

    audited_keys, reports_key: ARNs of KMS keys. in_vpc: the functions are.
    """

    stage: str = STAGE
    topic: str | None = None
    audited_keys: Sequence[str] = ()
    reports_key: str | None = None
    in_vpc: bool = False

    def named(self, thing: str) -> str:
        return f"{SERVICE}-{self.stage}-{thing}"


def audit_role_policy(
    targets: Sequence[Target], settings: Settings, deployment: Deployment, partition: str
) -> dict[str, Any]:
    """At settings.level. Raises UsageError where the settings leave out what the role must name."""
    arns, level = Arns(partition), settings.level or LEVEL
    run_folders = policies.STORE_WRITES if level == "exposure" else policies.STORE_OBJECT_CALLS
    return document(
        statement("Account", policies.ACCOUNT_CALLS.values(), ["*"]),
        statement(
            "Bucket",
            [*policies.BUCKET_CALLS.values(), *policies.LISTING_CALLS.values()],
            bucket_arns(targets, arns),
        ),
        statement(
            "Objects",
            [*policies.ACL_CALLS.values(), *(() if level == "exposure" else policies.READ_CALLS.values())],
            object_arns(targets, arns),
        ),
        *(_denials(targets, deployment, arns) if level == "exposure" else ()),
        *_reports(settings, deployment, arns, run_folders),
        *(_dispatch(settings, deployment, arns) if level == "fixity" else ()),
        *_own_invocations("audit", deployment, arns),
        *_lambda("audit", deployment, arns),
    )


def hashing_role_policy(
    targets: Sequence[Target], settings: Settings, deployment: Deployment, partition: str
) -> dict[str, Any]:
    """Raises UsageError where the settings leave out what the role must name."""
    if settings.level not in (None, "fixity"):
        raise UsageError(f"there is no hashing worker at level {settings.level}: use --level fixity")
    arns = Arns(partition)
    queues = {name: arns.queue(deployment.named(name)) for name in ("hash", "notifications", "dead-letters")}
    keys = deployment.audited_keys
    received = [policies.QUEUE_CALLS["ChangeMessageVisibility"], *policies.POLLING]
    return document(
        statement("Bucket", [policies.BUCKET_CALLS["HeadBucket"]], bucket_arns(targets, arns)),
        statement("Objects", policies.READ_CALLS.values(), object_arns(targets, arns)),
        *([statement("Keys", policies.AUDITED_KEYS, keys)] if keys else ()),
        statement("Received", received, [queues["hash"], queues["notifications"]]),
        statement("Sent", [policies.QUEUE_CALLS["SendMessageBatch"]], [queues["hash"], queues["dead-letters"]]),
        _ledger(settings, [*policies.LEDGER_READS, *policies.LEDGER_WRITES], arns),
        *_lambda("hashing", deployment, arns),
    )


def verify_role_policy(
    targets: Sequence[Target], settings: Settings, deployment: Deployment, partition: str
) -> dict[str, Any]:
    """Raises UsageError where the settings leave out what the role must name."""
    if settings.level not in (None, "fixity"):
        raise UsageError(f"nothing is verified at level {settings.level}: use --level fixity")
    arns, keys = Arns(partition), deployment.audited_keys
    ledger = [*policies.LEDGER_WRITES, *policies.LEDGER_SCANS]
    return document(
        statement("Bucket", policies.LISTING_CALLS.values(), bucket_arns(targets, arns)),
        statement("Objects", policies.READ_CALLS.values(), object_arns(targets, arns)),
        *([statement("Keys", policies.AUDITED_KEYS, keys)] if keys else ()),
        *_reports(settings, deployment, arns, policies.REPORT_CALLS),
        _ledger(settings, ledger, arns),
        *_own_invocations("verify", deployment, arns),
        *_lambda("verify", deployment, arns),
    )


def _own_invocations(function: str, deployment: Deployment, arns: Arns) -> list[Statement]:
    """What a function needs that hands on to itself: who hears of it, itself, and where its failures go."""
    return [
        statement(
            "Alerts",
            policies.ALERT_CALLS.values(),
            [deployment.topic or arns.anywhere("sns", deployment.named("alerts"))],
        ),
        statement(
            "HandOver",
            policies.HAND_OVER_CALLS.values(),
            [arns.anywhere("lambda", f"function:{deployment.named(function)}")],
        ),
        statement("Failures", policies.ON_FAILURE, [arns.queue(deployment.named("audit-failures"))]),
    ]


def _denials(targets: Sequence[Target], deployment: Deployment, arns: Arns) -> list[Statement]:
    """Not even where another policy allows it."""
    contents = sorted({arns.objects(target.bucket) for target in targets})
    nothing: Statement = {"Sid": "NoDecryption", "Effect": "Deny", "Action": ["kms:Decrypt"]}
    key = deployment.reports_key
    return [
        statement("NoContents", policies.READ_CALLS.values(), contents, "Deny"),
        {**nothing, **({"NotResource": [key]} if key else {"Resource": ["*"]})},
    ]


def _reports(settings: Settings, deployment: Deployment, arns: Arns, calls: Sequence[str]) -> list[Statement]:
    """calls: on the reports; where they do not read, the policies of the bucket and of its key allow that."""
    if (place := policies.place_in_bucket(settings.out)) is None:
        raise UsageError("the deployed audit writes to a bucket: name it with --out s3://REPORTS/audits")
    on_key = policies.REPORTS_KEY if {*policies.STORE_READS} <= {*calls} else policies.REPORTS_KEY_WRITES
    return [
        statement("ReportsList", ["s3:ListBucket"], [arns.bucket(place[0])]),
        statement("Reports", calls, [arns.objects(*place)]),
        *([statement("ReportsKey", on_key, [deployment.reports_key])] if deployment.reports_key else ()),
    ]


def _dispatch(settings: Settings, deployment: Deployment, arns: Arns) -> list[Statement]:
    return [
        statement("Queue", [policies.QUEUE_CALLS["SendMessageBatch"]], [arns.queue(deployment.named("hash"))]),
        _ledger(settings, [*policies.LEDGER_READS, *policies.LEDGER_WRITES], arns),
    ]


def _ledger(settings: Settings, actions: Sequence[str], arns: Arns) -> Statement:
    if (table := policies.table_of(settings.ledger)) is None:
        raise UsageError("the deployed ledger is a DynamoDB table: name it with --ledger dynamodb:TABLE")
    return statement("Ledger", actions, [arns.table(table)])


def _lambda(function: str, deployment: Deployment, arns: Arns) -> list[Statement]:
    """What Lambda itself does as the function."""
    group = arns.anywhere("logs", f"log-group:/aws/lambda/{deployment.named(function)}:*")
    network = [statement("Network", policies.NETWORK, ["*"])] if deployment.in_vpc else []
    return [statement("Logs", policies.LOGGING, [group]), *network]
