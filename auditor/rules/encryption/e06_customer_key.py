"""E06: the object is encrypted with a customer's key (SSE-C)."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.rules.base import Hit, Severity, rule


@rule("E06", "encryption-customer-key", Severity.MEDIUM, reads=("head.sse_customer_algorithm",))
def check(head_sse_customer_algorithm: str | None) -> Iterator[Hit]:
    """
    Why: S3 forgets the key after each request, so only whoever holds it can read the object; ransomware re-encrypts
        objects this way.
    Flagged: an object whose HEAD names a customer's algorithm, or whose HEAD S3 refuses with 400 while it shows the
        ACL: a HEAD needs the key, too.
    Not flagged: encryption under a KMS key or by S3 itself; client-side encryption.
    Blind to: an object whose HEAD and ACL are both refused; it is undecided.
    Fix: ask the uploader for the key and copy the object over itself without it; refuse SSE-C in the bucket policy.
    """
    if head_sse_customer_algorithm:
        yield Hit("it is encrypted with a key that only its uploader has")
