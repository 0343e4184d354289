"""The least IAM policy for what is selected: from the calls that a run makes to the actions that allow them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from auditor.aws.iam.actions import (
    ACCOUNT_CALLS,
    ACL_CALLS,
    AUDITED_KEYS,
    BUCKET_CALLS,
    LEDGER_READS,
    LEDGER_WRITES,
    LISTING_CALLS,
    QUEUE_CALLS,
    READ_CALLS,
    REPORTS_KEY,
    STORE_OBJECT_CALLS,
)
from auditor.aws.iam.arns import Arns
from auditor.model.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The resources of a run beside its targets. acl, head: read for each object. hash: bodies are read too.

    out, manifests: a directory or `s3://BUCKET[/PREFIX]`. queue: an SQS URL. ledger: `sqlite:PATH` or `dynamodb:TABLE`.
    audited_keys: ARNs of the KMS keys of objects that are hashed. reports_key: ARN of the KMS key of the bucket in out.
    """

    acl: bool
    head: bool
    hash: bool = False
    out: str = ""
    manifests: str | None = None
    queue: str | None = None
    ledger: str | None = None
    audited_keys: Sequence[str] = ()
    reports_key: str | None = None


def audit_policy(targets: Sequence[Target], access: Access, partition: str) -> dict[str, Any]:
    """An IAM policy document that allows an audit of the targets, and nothing else."""
    arns = Arns(partition)
    return document(
        statement("Account", ACCOUNT_CALLS.values(), ["*"]),
        *_target_statements(targets, access, arns),
        *([statement("Keys", AUDITED_KEYS, access.audited_keys)] if access.hash and access.audited_keys else ()),
        *_output_statements(access, arns),
        *_manifest_statements(access, arns),
        *_fixity_statements(access, arns),
    )


def document(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def statement(sid: str, actions: Iterable[str], resources: Iterable[str], effect: str = "Allow") -> dict[str, Any]:
    return {"Sid": sid, "Effect": effect, "Action": sorted(set(actions)), "Resource": list(resources)}


def bucket_arns(targets: Iterable[Target], arns: Arns) -> list[str]:
    return sorted({arns.bucket(target.bucket) for target in targets})


def object_arns(targets: Iterable[Target], arns: Arns) -> list[str]:
    return sorted({arns.objects(target.bucket, target.prefix) for target in targets})


def place_in_bucket(out: str) -> tuple[str, str] | None:
    """Bucket and prefix (empty, or ending in `/`) of a place for run folders; None for a directory."""
    if not out.startswith("s3://"):
        return None
    bucket, _, prefix = out.removeprefix("s3://").partition("/")
    return bucket, f"{prefix.strip('/')}/" if prefix.strip("/") else ""


def table_of(ledger: str | None) -> str | None:
    """The DynamoDB table of a ledger's URI, its name or ARN; None for another kind of ledger."""
    return ledger.partition(":")[2] if ledger and ledger.startswith("dynamodb:") else None


def _target_statements(targets: Sequence[Target], access: Access, arns: Arns) -> list[dict[str, Any]]:
    versions = any(target.versions for target in targets)
    on_objects = []
    if access.acl:
        on_objects.append(ACL_CALLS[versions])
    if access.head or access.hash:
        on_objects.append(READ_CALLS[versions])
    statements = [
        statement("Bucket", [*BUCKET_CALLS.values(), LISTING_CALLS[versions]], bucket_arns(targets, arns)),
    ]
    if on_objects:
        statements.append(statement("Objects", on_objects, object_arns(targets, arns)))
    return statements


def _output_statements(access: Access, arns: Arns) -> list[dict[str, Any]]:
    if (place := place_in_bucket(access.out)) is None:
        return []
    return [
        statement("OutputList", ["s3:ListBucket"], [arns.bucket(place[0])]),
        statement("Output", STORE_OBJECT_CALLS, [arns.objects(*place)]),
        *([statement("OutputKey", REPORTS_KEY, [access.reports_key])] if access.reports_key else ()),
    ]


def _manifest_statements(access: Access, arns: Arns) -> list[dict[str, Any]]:
    if access.manifests is None or (place := place_in_bucket(access.manifests)) is None:
        return []
    return [
        statement("ManifestsList", ["s3:ListBucket"], [arns.bucket(place[0])]),
        statement("Manifests", STORE_OBJECT_CALLS, [arns.objects(*place)]),
    ]


def _fixity_statements(access: Access, arns: Arns) -> list[dict[str, Any]]:
    statements = []
    if access.queue:
        name = access.queue.rstrip("/").rpartition("/")[2]
        statements.append(statement("Queue", [QUEUE_CALLS["SendMessageBatch"]], [arns.queue(name)]))
    if table := table_of(access.ledger):
        # Written even where nothing is hashed: S3's own digests, as its word.
        statements.append(statement("Ledger", [*LEDGER_READS, *LEDGER_WRITES], [arns.table(table)]))
    return statements
