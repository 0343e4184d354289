"""E01: the object is not encrypted at rest by S3."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.finding import Severity
from auditor.model.object import Head
from auditor.rules.base import Hit, rule


@rule("E01", "encryption-missing", Severity.HIGH, reads=("head",))
def check(head: Head) -> Iterator[Hit]:
    """
    Why: S3 encrypts every upload since 2023-01-05; an older object stays as it was, and no bucket setting shows it.
    Flagged: HEAD names neither a server-side encryption nor a customer's key.
    Not flagged: any server-side encryption that S3 names, known to us or not; which key is another question.
    Blind to: encryption by the client; servers other than AWS, which may encrypt and not say so.
    Fix: copy the object over itself (S3 Batch Operations for many); the new copy is encrypted.
    """
    if not head.server_side_encryption and not head.sse_customer_algorithm:
        yield Hit("it is not encrypted at rest")
