"""E01: the object is not encrypted at rest by S3."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.rules.base import Hit, Severity, rule


@rule(
    "E01",
    "encryption-missing",
    Severity.HIGH,
    reads=("head.server_side_encryption", "head.sse_customer_algorithm"),
)
def check(head_server_side_encryption: str | None, head_sse_customer_algorithm: str | None) -> Iterator[Hit]:
    """
    Why: S3 has encrypted every upload since 2023-01-05, but older objects stay unencrypted, and no bucket setting shows
        it.
    Flagged: an object whose HEAD names neither server-side encryption nor a customer's key.
    Not flagged: any server-side encryption that S3 names, known to us or not, with any key.
    Blind to: client-side encryption; servers other than AWS that encrypt without saying so.
    Fix: copy the object over itself (many of them with S3 Batch Operations); S3 encrypts the copy.
    """
    if not head_server_side_encryption and not head_sse_customer_algorithm:
        yield Hit("it is not encrypted at rest")
