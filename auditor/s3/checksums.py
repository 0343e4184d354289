"""Read the checksums of whole objects that S3 stores: HEAD and GET return them, the listing names their algorithms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from operator import attrgetter
from typing import Final

from auditor.model.digest import SIZES, of_base64
from auditor.model.object import Evidence, Head, ObjectRef

_S3_CHECKSUMS: Final = {
    "sha256": "checksum_sha256",
    "sha512": "checksum_sha512",
    "sha1": "checksum_sha1",
    "md5": "checksum_md5",
    "crc64nvme": "checksum_crc64nvme",
}
"""For each algorithm that a ledger may hold: the field of Head with the checksum."""

_VALUES: Final = attrgetter(*_S3_CHECKSUMS.values())
_NONE: Final[Mapping[str, str]] = {}


def s3_digests(evidence: Evidence) -> Mapping[str, str]:
    """Return S3's checksums of the whole object, which its HEAD named, by algorithm, in lower-case hex.

    Composite checksums are left out: a multipart upload computes them from the checksums of its parts. A checksum is
    composite if its type is COMPOSITE, or if it has no type and the ETag contains a "-".
    """
    head = evidence.head
    if not isinstance(head, Head):
        return _NONE
    stored = _VALUES(head)
    if not any(stored):  # most objects, so that it is first
        return _NONE
    multipart = "-" in head.etag
    if not (head.checksum_type == "FULL_OBJECT" or (head.checksum_type is None and not multipart)):
        return _NONE
    named = zip(_S3_CHECKSUMS, stored, strict=True)
    return {name: digest for name, text in named if text and (digest := of_base64(text, name))}


def promised(ref: ObjectRef) -> frozenset[str]:
    """Return the algorithms of the checksums that the listing announces for the whole object, in lower case.

    Composite checksums are left out. The caller may lack the permission to read the checksums themselves.
    """
    whole = ref.checksum_type == "FULL_OBJECT" or (ref.checksum_type is None and "-" not in ref.etag)
    return frozenset(name.lower() for name in ref.checksum_algorithms) if whole else frozenset()


Headers = Mapping[bytes, bytes]
CHECKSUM_MODE: Final = ("x-amz-checksum-mode", "ENABLED")
"""The request header that makes S3 return checksums."""

_PREFIX: Final = b"x-amz-checksum-"
_TYPE: Final = b"x-amz-checksum-type"
_NAMES: Final = {_PREFIX + name.encode(): name for name in SIZES}
_OF_PARTS: Final = re.compile(rb'-[0-9]+"?$')


def stored(headers: Headers) -> Mapping[str, str]:
    """Return the whole object's checksums in an answer's headers (lower-case names), by algorithm, in lower-case hex.

    Composite checksums (digests of the parts' digests) are left out: their type is COMPOSITE, or they have no type and
    the ETag is a multipart upload's. A value whose length does not fit the algorithm is left out too.
    """
    found = {name: headers[header] for header, name in _NAMES.items() if header in headers}
    if not found or not _of_the_whole(headers):
        return _NONE
    digests = {name: of_base64(value.strip(), name) for name, value in found.items()}
    return {name: digest for name, digest in digests.items() if digest}


def _of_the_whole(headers: Headers) -> bool:
    kind = headers.get(_TYPE, b"").strip().upper()
    return kind == b"FULL_OBJECT" or (not kind and not _OF_PARTS.search(headers.get(b"etag", b"").strip()))
