"""E03: the object is encrypted under a KMS key that the configuration does not allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from auditor.model.object import Unread
from auditor.model.toml_forms import form
from auditor.rules.base import Hit, Severity, rule

_KEY: Final = r"(arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/)?(mrk-)?[0-9a-f-]{32,36}"
"""The ARN of a KMS key, or its ID alone."""
_Key = Annotated[str, form("write ARNs or IDs of KMS keys; S3 does not report aliases", _KEY)]
_Keys = Annotated[list[_Key], form("name at least one KMS key", min_length=1)]


@rule(
    "E03",
    "encryption-key",
    Severity.HIGH,
    reads=("head.server_side_encryption", "head.sse_kms_key_id", "config.keys"),
    options={"keys": _Keys},
)
def check(
    head_server_side_encryption: str | None, head_sse_kms_key_id: str | None, keys: list[str]
) -> Iterator[Hit | Unread]:
    """
    Why: the policy of another key decides who can decrypt, and whoever may delete that key can delete the object.
    Flagged: an object under a KMS key that keys in [rules.E03] does not list: ARNs, or key IDs for any region.
    Not flagged: objects that are not encrypted under a KMS key (E01, E02, E06).
    Blind to: the alias by which an uploader named the key. Where S3 names no key at all, the rule is undecided.
    Fix: set an allowed key as the bucket's default; `auditor fix-kit` writes the S3 Batch Operations job that
        switches the objects to it without rewriting them (UpdateObjectEncryption).
    """
    if not (head_server_side_encryption or "").startswith("aws:kms"):
        return
    key = head_sse_kms_key_id
    if not key:
        yield Unread("HeadObject", "Unknown")
    elif key not in keys and key.rpartition("/")[2] not in keys:
        yield Hit("its KMS key is not an allowed key")
