"""Write the smallest IAM policy for an audit: it allows the calls of the audit, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from auditor.model.target import Target
from auditor.offline.iam import actions


class Arns(Struct, frozen=True):
    """Builds the ARNs of one partition for an IAM policy. An ARN built from a name matches any region and account."""

    partition: str

    def bucket(self, name: str) -> str:
        return f"arn:{self.partition}:s3:::{name}"

    def objects(self, bucket: str, prefix: str = "") -> str:
        """Return an ARN pattern that matches the objects whose keys begin with `prefix`, taken literally."""
        return f"{self.bucket(bucket)}/{_literal(prefix)}*"

    def anywhere(self, service: str, resource: str) -> str:
        return f"arn:{self.partition}:{service}:*:*:{resource}"

    def queue(self, name: str) -> str:
        return self.anywhere("sqs", name)

    def table(self, name: str) -> str:
        """Return the ARN of a DynamoDB table, given by its name or by its ARN."""
        return name if name.startswith("arn:") else self.anywhere("dynamodb", f"table/{name}")

    def event_bus(self, name: str) -> str:
        """Return the ARN of an event bus, given by its name or by its ARN."""
        return name if name.startswith("arn:") else self.anywhere("events", f"event-bus/{name}")


def _literal(prefix: str) -> str:
    """Escape `*`, `?` and `$`, which are special in the ARNs of a policy (IAM User Guide, policy variables)."""
    return "".join(f"${{{character}}}" if character in "*?$" else character for character in prefix)


class Access(Struct, frozen=True, kw_only=True):
    """The access that an audit needs: to facts of each object, and to resources (output, ledger, queue, keys)."""

    acl: bool
    """True if the audit reads the ACL of each object."""
    head: bool
    """True if the audit reads the HEAD of each object."""
    hash: bool = False
    """True if the audit reads the bodies of the objects."""
    out: str = ""
    """The place of the run folders: a directory or `s3://BUCKET[/PREFIX]`."""
    manifests: str | None = None
    """The place of the batch manifests, in the same form as `out`."""
    inventory: str | None = None
    """The place of the reports of S3 Inventory, in the same form as `out`; None if the audit reads none."""
    inventory_key: str | None = None
    """ARN of the KMS key of the reports of S3 Inventory; None if they are not under SSE-KMS."""
    asks_inventory: bool = False
    """True if the audit asks for the place of the reports of S3 Inventory."""
    queue: str | None = None
    """The URL of the SQS queue for objects to hash; None for no queue."""
    ledger: str | None = None
    """The URI of the ledger, `sqlite:PATH` or `dynamodb:TABLE`; None for no ledger."""
    topics: Sequence[str] = ()
    """ARNs of the topics for alerts."""
    event_bus: str | None = None
    """Name or ARN of the event bus."""
    key_policies: bool = False
    """True if the audit reads the policies of the KMS keys that encrypt the objects."""
    audited_keys: Sequence[str] = ()
    """ARNs of the KMS keys that encrypt the objects to hash, or whose policies are to be read."""
    reports_key: str | None = None
    """ARN of the KMS key of the bucket in `out`."""
    roles: Sequence[str] = ()
    """ARNs of the roles of an estate's accounts, which the audit assumes. It needs nothing else in these accounts."""


def audit_policy(targets: Sequence[Target], access: Access, partition: str) -> dict[str, Any]:
    """Return an IAM policy document that allows an audit of the targets and nothing else. targets: (), if all of them
    are read by assumed roles.
    """
    arns = Arns(partition)
    own = [statement("Account", actions.ACCOUNT_CALLS.values(), ["*"]), *_target_statements(targets, access, arns)]
    return document(
        *(own if targets else ()),
        *statements("Roles", actions.ROLE_CALLS.values(), access.roles),
        *statements("Keys", actions.AUDITED_KEYS, access.audited_keys if access.hash else ()),
        *statements("KeyPolicies", actions.KEY_POLICIES, (access.audited_keys or ["*"]) if access.key_policies else ()),
        *store_statements("Output", actions.STORE_OBJECT_CALLS, access.out, arns),
        *statements("OutputKey", actions.REPORTS_KEY, [access.reports_key] if access.out.startswith("s3://") else ()),
        *store_statements("Manifests", actions.STORE_OBJECT_CALLS, access.manifests or "", arns),
        *inventory_statements(access.inventory, actions.STORE_READS, arns),
        *statements("InventoryKey", actions.INVENTORY_KEY, [access.inventory_key] if access.inventory else ()),
        *_fixity_statements(access, arns),
        *channel_statements(access.topics, access.event_bus, arns),
    )


def every_bucket(*, versions: bool = False) -> Target:
    """Return the target that stands for every bucket of the account in a policy. It is no target of an audit."""
    return Target("*", versions=versions)


def document(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def statement(sid: str, allowed: Iterable[str], resources: Iterable[str]) -> dict[str, Any]:
    return {"Sid": sid, "Effect": "Allow", "Action": sorted(set(allowed)), "Resource": list(resources)}


def bucket_arns(targets: Iterable[Target], arns: Arns) -> list[str]:
    return sorted({arns.bucket(target.bucket) for target in targets})


def object_arns(targets: Iterable[Target], arns: Arns) -> list[str]:
    return sorted({arns.objects(target.bucket, target.prefix) for target in targets})


def statements(sid: str, allowed: Iterable[str], resources: Iterable[str | None]) -> list[dict[str, Any]]:
    """Return a list with the one policy statement that allows actions on these resources; [] if there are none.

    sid: the ID of the statement. resources: ARNs; None and "" are skipped.
    """
    found = [one for one in resources if one]
    return [statement(sid, allowed, found)] if found else []


def store_statements(sid: str, allowed: Iterable[str], out: str, arns: Arns) -> list[dict[str, Any]]:
    """Return the policy statements that allow to list the run folders in `s3://BUCKET[/PREFIX]`, and actions on them.

    Return [] if `out` is a local directory. sid: the beginning of the statements' IDs.
    """
    if not out.startswith("s3://"):
        return []
    bucket, _, prefix = out.removeprefix("s3://").partition("/")
    prefix = prefix.strip("/")
    return [
        statement(f"{sid}List", ["s3:ListBucket"], [arns.bucket(bucket)]),
        statement(sid, allowed, [arns.objects(bucket, f"{prefix}/" if prefix else "")]),
    ]


def inventory_statements(place: str | None, allowed: Iterable[str], arns: Arns) -> list[dict[str, Any]]:
    """Return the policy statements that allow to list the reports of S3 Inventory, below their prefix alone, and
    actions on them; without actions, to list them. [] for no place. place: `s3://BUCKET[/PREFIX]`.
    """
    if place is None:
        return []
    listing, reading = store_statements("Inventory", allowed, place, arns)
    (whole,), (objects,) = listing["Resource"], reading["Resource"]
    below = objects.removeprefix(f"{whole}/")
    if below != "*":
        listing["Condition"] = {"StringLike": {"s3:prefix": below}}
    return [listing, reading] if reading["Action"] else [listing]


def channel_statements(topics: Sequence[str], event_bus: str | None, arns: Arns) -> list[dict[str, Any]]:
    """Return the policy statements that allow to send alerts and events; [] without a topic and a bus.

    topics: ARNs of topics. event_bus: the name or the ARN of a bus.
    """
    buses = [arns.event_bus(event_bus)] if event_bus else []
    return [
        *statements("Alerts", actions.ALERT_CALLS.values(), topics),
        *statements("Events", actions.EVENT_CALLS.values(), buses),
    ]


def table_of(ledger: str | None) -> str | None:
    """Return the table's name or ARN in the URI of a DynamoDB ledger; None for another kind of ledger, or for None."""
    return ledger.partition(":")[2].partition("?")[0] if ledger and ledger.startswith("dynamodb:") else None


def _target_statements(targets: Sequence[Target], access: Access, arns: Arns) -> list[dict[str, Any]]:
    versions = any(target.versions for target in targets)
    inventory = actions.INVENTORY_CALLS.values() if access.asks_inventory else ()
    on_buckets = [*actions.BUCKET_CALLS.values(), actions.LISTING_CALLS[versions], *inventory]
    on_objects = [actions.ACL_CALLS[versions]] if access.acl else []
    on_objects += [actions.READ_CALLS[versions]] if access.head or access.hash else []
    return [
        statement("Bucket", on_buckets, bucket_arns(targets, arns)),
        *statements("Objects", on_objects, object_arns(targets, arns) if on_objects else ()),
    ]


def _fixity_statements(access: Access, arns: Arns) -> list[dict[str, Any]]:
    queue, table = (access.queue or "").rstrip("/").rpartition("/")[2], table_of(access.ledger)
    # An audit writes S3's own checksums even if it hashes nothing.
    on_table = [*actions.LEDGER_READS, *actions.LEDGER_WRITES]
    return [
        *statements("Queue", [actions.QUEUE_CALLS["SendMessageBatch"]], [arns.queue(queue)] if access.queue else ()),
        *statements("Ledger", on_table, [arns.table(table)] if table else ()),
    ]
