"""I03: digests of one object differ: S3's stored checksum, the ledger's record, or that of its bytes."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.model.finding import Severity
from auditor.model.object import DigestSources, Head
from auditor.rules.base import Hit, rule


@rule("I03", "digests-differ", Severity.CRITICAL, reads=("head", "digests"))
def check(head: Head, digests: DigestSources) -> Iterator[Hit]:
    """
    Why: the key, the version and the ETag are the same and the bytes are not: the object was damaged, or replaced in a
        way that its ETag does not show.
    Flagged: the full-object checksum that S3 stores is another than the digest that the ledger recorded of the same
        version; or the bytes, where this run hashed them, have another digest than either.
    Not flagged: an object with another ETag or size than was recorded: it is a new one, with a digest of its own.
    Blind to: composite checksums of multipart uploads, which are no digest of the object; algorithms that the run does
        not want; stored checksums that HEAD does not give for want of kms:Decrypt; runs without a ledger.
    Fix: keep the object and its versions as they are, read it again (auditor verify), and restore it from a copy whose
        digest is the recorded one.
    """
    pairs = (
        ("S3 stores", digests.stored, "the ledger has", digests.recorded),
        ("S3 stores", digests.stored, "its bytes have", digests.read),
        ("the ledger has", digests.recorded, "its bytes have", digests.read),
    )
    differing = [
        f"{algorithm}: {one} {_short(first[algorithm])}, {other} {_short(second[algorithm])}"
        for one, first, other, second in pairs
        for algorithm in sorted(first.keys() & second.keys())
        if first[algorithm] != second[algorithm]
    ]
    if differing:
        yield Hit("; ".join(differing))


def _short(digest: str) -> str:
    return digest if len(digest) <= 64 else f"{digest[:61]}..."
