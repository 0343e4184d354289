"""The facts of one object in an S3 Inventory report, and their translation into the terms of GetObjectAcl and
HeadObject.

Source: S3 User Guide, "Amazon S3 Inventory list" (storage-inventory-contents). An empty column is unread: S3 leaves it
empty both where an object lacks the property and where the report does not know it. For the stored ACL: S3 User Guide,
"Working with the Object ACL field" (objectacl): JSON with version, status and grants. A report has it in base64. A
report has the ACLs of a bucket whose ACLs are disabled, too: it shows what is stored.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from auditor.model.dates import iso_date, seconds_in_utc
from auditor.model.json_codec import JsonError, parse_object
from auditor.model.object import Acl, Grant, Head, ObjectRef, PartialHead

FACT_COLUMNS: Final = (
    "ObjectAccessControlList",
    "ObjectOwner",
    "EncryptionStatus",
    "BucketKeyStatus",
    "ReplicationStatus",
    "ObjectLockMode",
    "ObjectLockRetainUntilDate",
    "ObjectLockLegalHoldStatus",
    "ObjectLockEventHoldStatus",
)
"""The columns that the facts are made from, in the order of their cells in a shape."""

KMS_ALGORITHMS: Final = frozenset({"aws:kms", "aws:kms:dsse"})
_ENCRYPTION: Final[Mapping[str, str | None]] = {
    "SSE-S3": "AES256",
    "SSE-KMS": "aws:kms",
    "DSSE-KMS": "aws:kms:dsse",
    "NOT-SSE": None,
}
_BUCKET_KEY: Final[Mapping[str, bool | None]] = {"ENABLED": True, "DISABLED": None}
"""HeadObject sends its header only for an object with a bucket key."""

_REPLICATION: Final = frozenset({"PENDING", "COMPLETED", "FAILED", "REPLICA"})
_LOCK_MODES: Final = frozenset({"GOVERNANCE", "COMPLIANCE"})
_HOLDS: Final = frozenset({"ON", "OFF"})

_ENCRYPTION_MEMBERS: Final = frozenset({"server_side_encryption", "sse_kms_key_id", "sse_customer_algorithm"})

Shape = tuple[str, ...]
"""The cells of one row in the columns FACT_COLUMNS; "" for a column that the report does not have. Most rows of a
report have one of a few shapes."""


class InventoryFacts(Struct, frozen=True):
    """The facts of an object in a report.

    acl: the stored ACL; None if it is unread. owner: canonical ID; None if it is unread. members: members of
    HeadObject's answer by name; one that is not in the mapping is unread. They lack the KMS key of an object, which a
    report does not name, and say nothing of an object under a customer's key (SSE-C), whose HEAD S3 refuses.
    """

    acl: Acl | None
    owner: str | None
    members: Mapping[str, Any]

    def head(self, ref: ObjectRef) -> PartialHead | None:
        """Return the HEAD of the listed object as far as the listing and the report tell it; None if the report does
        not tell the encryption, on which each verdict depends, or does not name the KMS key.
        """
        if not _ENCRYPTION_MEMBERS.issubset(self.members):
            return None
        listed: dict[str, Any] = {
            "etag": ref.etag,
            "content_length": ref.size,
            "last_modified": ref.last_modified,
            "storage_class": None if ref.storage_class == "STANDARD" else ref.storage_class,
        }
        return PartialHead(**listed, **self.members, unread=_unread(frozenset((*listed, *self.members))))


@lru_cache(64)
def _unread(known: frozenset[str]) -> frozenset[str]:
    return frozenset(Head.__struct_fields__) - known


def facts_of(shape: Shape) -> InventoryFacts:
    """Return the facts in the cells of a row. A cell that cannot be understood is unread."""
    cells = dict(zip(FACT_COLUMNS, shape, strict=True))
    owner = cells["ObjectOwner"] if cells["ObjectOwner"] not in ("", UNAVAILABLE) else None
    members: dict[str, Any] = {}
    status = cells["EncryptionStatus"]
    if status in _ENCRYPTION:
        members["server_side_encryption"] = _ENCRYPTION[status]
        members["sse_customer_algorithm"] = None
        if members["server_side_encryption"] not in KMS_ALGORITHMS:
            members["sse_kms_key_id"] = None
    if cells["BucketKeyStatus"] in _BUCKET_KEY:
        members["bucket_key_enabled"] = _BUCKET_KEY[cells["BucketKeyStatus"]]
    if cells["ReplicationStatus"] in _REPLICATION:
        members["replication_status"] = cells["ReplicationStatus"]
    _add_lock(members, cells)
    return InventoryFacts(read_acl(cells["ObjectAccessControlList"], owner), owner, members)


def _add_lock(members: dict[str, Any], cells: Mapping[str, str]) -> None:
    if (mode := cells["ObjectLockMode"].upper()) in _LOCK_MODES:
        members["object_lock_mode"] = mode
    if (hold := cells["ObjectLockLegalHoldStatus"].upper()) in _HOLDS:
        members["object_lock_legal_hold_status"] = hold
    if (held := cells["ObjectLockEventHoldStatus"].upper()) in _HOLDS:
        members["object_lock_event_hold"] = held
    if cells["ObjectLockRetainUntilDate"]:
        try:
            date = seconds_in_utc(iso_date(cells["ObjectLockRetainUntilDate"]))
        except ValueError:
            return
        members["object_lock_retain_until_date"] = date


UNAVAILABLE: Final = "UNAVAILABLE"


def read_acl(text: str, owner: str | None) -> Acl | None:
    """Return the ACL in the field's text; None if the report does not have it, or if the text is malformed.

    owner: canonical ID in the field ObjectOwner; None if it is unknown: without the owner there is no ACL, because a
    grant to the owner and one to a stranger look alike.
    """
    if not text or owner is None:
        return None
    try:
        document = parse_object(text if text.lstrip().startswith("{") else base64.b64decode(text, validate=True))
        if document["status"] != "AVAILABLE":
            return None
        return Acl(owner, tuple(_grants(document["grants"])))
    except (JsonError, binascii.Error, KeyError, TypeError, ValueError):
        return None


def _grants(entries: list[Mapping[str, Any]]) -> Iterator[Grant]:
    for entry in entries:
        kind = entry["type"]
        grantee = entry["uri"] if kind == "Group" else entry["canonicalId"]
        permission = entry["permission"]
        if kind not in ("Group", "CanonicalUser") or not _is_text(grantee) or not _is_text(permission):
            raise ValueError("is not a grant")
        yield Grant(grantee, permission)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)
