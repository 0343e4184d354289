"""E02: the object is encrypted in a way that the configuration does not accept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from auditor.model.toml_forms import form
from auditor.rules.base import Hit, Severity, rule

KINDS: Final = {
    "AES256": "SSE-S3",
    "aws:kms": "SSE-KMS",
    "aws:kms:dsse": "DSSE-KMS",
    "aws:fsx": "that of FSx",
    "aws:backup": "that of AWS Backup",
}
"""The kinds of encryption by the value of S3's header, in words for messages."""

_Kind = Annotated[str, form("write values of x-amz-server-side-encryption, such as aws:kms", r"[\x21-\x7e]+")]
_Kinds = Annotated[list[_Kind], form("name at least one kind of encryption, such as aws:kms", min_length=1)]


@rule(
    "E02",
    "encryption-kind",
    Severity.MEDIUM,
    reads=("head.server_side_encryption", "config.accepted"),
    options={"accepted": _Kinds},
)
def check(head_server_side_encryption: str | None, accepted: list[str]) -> Iterator[Hit]:
    """
    Why: only a KMS key leaves a trail of its uses and can be revoked; SSE-S3 decrypts for everyone who may read.
    Flagged: an object whose encryption by S3 is not listed as accepted in [rules.E02], such as ["aws:kms"].
    Not flagged: objects without encryption by S3 (E01), objects under a customer's key (E06); the key itself (E03).
    Blind to: client-side encryption.
    Fix: copy the object over itself with the required encryption, and make it the bucket's default.
    """
    kind = head_server_side_encryption
    if kind and kind not in accepted:
        yield Hit(f"its encryption is {KINDS.get(kind, 'of a newer kind')}, which is not accepted")
