"""Digests of the whole object that S3 itself stores: those that HEAD gave, and those that the listing promises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from auditor.hexdigests import of_base64
from auditor.models import Evidence, Head, ObjectRef

_S3_CHECKSUMS: Final = {
    "sha256": "checksum_sha256",
    "sha1": "checksum_sha1",
    "crc64nvme": "checksum_crc64nvme",
}
"""HEAD's member for each algorithm that a ledger may hold."""
_NONE: Final[Mapping[str, str]] = {}


def s3_digests(evidence: Evidence) -> Mapping[str, str]:
    """Digests that S3 itself stores of the whole object, lower-case hex; a composite checksum is none.

    ChecksumType tells FULL_OBJECT from COMPOSITE; where a server does not say, only a multipart ETag ends in `-N`.
    """
    head = evidence.head
    if not isinstance(head, Head):
        return _NONE
    multipart = "-" in head.etag
    if not (head.checksum_type == "FULL_OBJECT" or (head.checksum_type is None and not multipart)):
        return _NONE
    stored = {name: getattr(head, member) for name, member in _S3_CHECKSUMS.items()}
    return {name: digest for name, text in stored.items() if text and (digest := of_base64(text, name))}


def promised(ref: ObjectRef) -> frozenset[str]:
    """Algorithms whose full-object checksum S3 stores, as the listing says, whether or not we may read its value."""
    whole = ref.checksum_type == "FULL_OBJECT" or (ref.checksum_type is None and "-" not in ref.etag)
    return frozenset(name.lower() for name in ref.checksum_algorithms) if whole else frozenset()
