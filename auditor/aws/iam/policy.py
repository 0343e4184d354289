"""The least IAM policy for what is selected: from the calls that a run makes to the actions that allow them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from auditor.aws.iam.actions import (
    ACCOUNT_CALLS,
    ACL_CALLS,
    ALERT_CALLS,
    AUDITED_KEYS,
    BUCKET_CALLS,
    HAND_OVER_CALLS,
    LEDGER_READS,
    LEDGER_SCANS,
    LEDGER_WRITES,
    LISTING_CALLS,
    LOGGING,
    NETWORK,
    ON_FAILURE,
    POLLING,
    QUEUE_CALLS,
    READ_CALLS,
    REPORT_CALLS,
    REPORTS_KEY,
    REPORTS_KEY_READS,
    REPORTS_KEY_WRITES,
    STORE_OBJECT_CALLS,
    STORE_READS,
    STORE_WRITES,
)
from auditor.aws.iam.arns import Arns
from auditor.config.settings import Settings
from auditor.model.target import Target
from auditor.rules.base import Rule


@dataclass(frozen=True, slots=True)
class Selection:
    """What of each object is asked, as far as the rules alone decide it: before a bucket's settings are known."""

    acl: bool
    head: bool

    @classmethod
    def of_rules(cls, rules: Iterable[Rule]) -> Selection:
        reads = {fact for rule in rules for fact in rule.reads}
        return cls(acl=not reads.isdisjoint({"acl", "owner"}), head="head" in reads)


def audit_role(level: str) -> frozenset[str]:
    """Every action that the deployed audit function's role allows at a level, whatever an event may ask of it.

    At `exposure` no object can be read and nothing decrypted: the reports bucket's own policy and its key's allow that.
    """
    actions = {
        *ACCOUNT_CALLS.values(),
        *BUCKET_CALLS.values(),
        *LISTING_CALLS.values(),
        *ACL_CALLS.values(),
        *STORE_WRITES,
        *REPORTS_KEY_WRITES,
        *ALERT_CALLS.values(),
        *HAND_OVER_CALLS.values(),
        *ON_FAILURE,
        *LOGGING,
        *NETWORK,
    }
    if level != "exposure":
        actions.update([*READ_CALLS.values(), *STORE_READS, *REPORTS_KEY_READS])
    if level == "fixity":
        actions.update([QUEUE_CALLS["SendMessageBatch"], *LEDGER_READS, *LEDGER_WRITES])
    return frozenset(actions)


def hashing_role() -> frozenset[str]:
    """Every action that the deployed hashing function's role allows."""
    return frozenset(
        {
            BUCKET_CALLS["HeadBucket"],
            *READ_CALLS.values(),
            *AUDITED_KEYS,
            *QUEUE_CALLS.values(),
            *LEDGER_READS,
            *LEDGER_WRITES,
            *POLLING,
            *LOGGING,
            *NETWORK,
        }
    )


def verify_role() -> frozenset[str]:
    """Every action that the deployed verifying function's role allows."""
    return frozenset(
        {
            BUCKET_CALLS["HeadBucket"],
            *LISTING_CALLS.values(),
            *READ_CALLS.values(),
            *AUDITED_KEYS,
            *REPORT_CALLS,
            *REPORTS_KEY,
            *LEDGER_WRITES,
            *LEDGER_SCANS,
            *ALERT_CALLS.values(),
            *HAND_OVER_CALLS.values(),
            *ON_FAILURE,
            *LOGGING,
            *NETWORK,
        }
    )


def audit_policy(
    targets: Sequence[Target],
    settings: Settings,
    selection: Selection,
    partition: str,
    *,
    audited_keys: Sequence[str] = (),
    reports_key: str | None = None,
) -> dict[str, Any]:
    """An IAM policy document that allows an audit of the targets, and nothing else.

    audited_keys: ARNs of the KMS keys of objects that are hashed. reports_key: of the bucket that settings.out names.
    """
    arns = Arns(partition)
    return document(
        statement("Account", ACCOUNT_CALLS.values(), ["*"]),
        *_target_statements(targets, settings, selection, arns),
        *([statement("Keys", AUDITED_KEYS, audited_keys)] if settings.hash and audited_keys else ()),
        *_output_statements(settings, arns, reports_key),
        *_manifest_statements(settings, arns),
        *_fixity_statements(settings, arns),
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


def _target_statements(
    targets: Sequence[Target], settings: Settings, selection: Selection, arns: Arns
) -> list[dict[str, Any]]:
    versions = any(target.versions for target in targets)
    on_objects = []
    if selection.acl:
        on_objects.append(ACL_CALLS[versions])
    if selection.head or settings.hash:
        on_objects.append(READ_CALLS[versions])
    statements = [
        statement("Bucket", [*BUCKET_CALLS.values(), LISTING_CALLS[versions]], bucket_arns(targets, arns)),
    ]
    if on_objects:
        statements.append(statement("Objects", on_objects, object_arns(targets, arns)))
    return statements


def _output_statements(settings: Settings, arns: Arns, key: str | None) -> list[dict[str, Any]]:
    if (place := place_in_bucket(settings.out)) is None:
        return []
    return [
        statement("OutputList", ["s3:ListBucket"], [arns.bucket(place[0])]),
        statement("Output", STORE_OBJECT_CALLS, [arns.objects(*place)]),
        *([statement("OutputKey", REPORTS_KEY, [key])] if key else ()),
    ]


def _manifest_statements(settings: Settings, arns: Arns) -> list[dict[str, Any]]:
    if settings.batch_manifest is None or (place := place_in_bucket(settings.batch_manifest)) is None:
        return []
    return [
        statement("ManifestsList", ["s3:ListBucket"], [arns.bucket(place[0])]),
        statement("Manifests", STORE_OBJECT_CALLS, [arns.objects(*place)]),
    ]


def _fixity_statements(settings: Settings, arns: Arns) -> list[dict[str, Any]]:
    statements = []
    if settings.queue:
        name = settings.queue.rstrip("/").rpartition("/")[2]
        statements.append(statement("Queue", [QUEUE_CALLS["SendMessageBatch"]], [arns.queue(name)]))
    if table := table_of(settings.ledger):
        # Written even where nothing is hashed: S3's own digests, as its word.
        statements.append(statement("Ledger", [*LEDGER_READS, *LEDGER_WRITES], [arns.table(table)]))
    return statements
