"""Read the field ObjectAccessControlList of an S3 Inventory report.

Source: S3 User Guide, "Working with the Object ACL field" (objectacl): JSON with version, status and grants. A report
has it in base64. A report has the ACLs of a bucket whose ACLs are disabled, too: it shows what is stored.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any, Final

from auditor.model.json_codec import JsonError, parse_object
from auditor.model.object import Acl, Grant

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
            raise ValueError("is no grant")
        yield Grant(grantee, permission)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)
