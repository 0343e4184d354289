"""I03: digests of one object differ: S3's stored checksum, the ledger's record, or the digest of its bytes."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.object import DigestSources, Head
from auditor.rules.base import Hit, Severity, rule


@rule("I03", "digests-differ", Severity.CRITICAL, reads=("head", "digests"), head=("content",))
def check(head: Head, digests: DigestSources) -> Iterator[Hit]:
    """
    Why: key, version and ETag are unchanged and the bytes are not: the object was damaged, or replaced in a way that
        its ETag does not show.
    Flagged: the full-object checksum that S3 stores differs from the digest that the ledger has of the same version;
        or this run hashed the bytes, and their digest differs from one of these two.
    Not flagged: an object whose ETag or size differs from the ledger's: it is a new object with its own digest.
    Blind to: composite checksums of multipart uploads, which are not digests of the object; algorithms that the run
        does not select; stored checksums that HEAD leaves out without kms:Decrypt; runs without a ledger.
    Fix: keep the object and its versions as they are, read it again (auditor verify), and restore it from a copy that
        has the recorded digest.
    """
    if not digests.read and not (digests.stored and digests.recorded):
        return  # most objects of a ledger: nothing contradicts its digest
    pairs = (
        ("S3 stores", digests.stored, "the ledger has", digests.recorded),
        ("S3 stores", digests.stored, "its bytes have", digests.read),
        ("the ledger has", digests.recorded, "its bytes have", digests.read),
    )
    differing = [
        f"{algorithm}: {one} {_short(first[algorithm])}, {other} {_short(second[algorithm])}"
        for one, first, other, second in pairs
        if first and second
        for algorithm in sorted(first.keys() & second.keys())
        if first[algorithm] != second[algorithm]
    ]
    if differing:
        yield Hit("; ".join(differing))


def _short(digest: str) -> str:
    return digest if len(digest) <= 64 else f"{digest[:61]}..."
