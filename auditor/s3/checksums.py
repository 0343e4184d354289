"""The checksums of a whole object that S3 itself stores: in HeadObject, in GetObject, and named by the listing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from auditor.model.digest import SIZES, of_base64
from auditor.model.object import Evidence, Head, ObjectRef

_S3_CHECKSUMS: Final = {
    "sha256": "checksum_sha256",
    "sha1": "checksum_sha1",
    "crc64nvme": "checksum_crc64nvme",
}
"""HEAD's member for each algorithm that a ledger may hold."""

_NONE: Final[Mapping[str, str]] = {}


def s3_digests(evidence: Evidence) -> Mapping[str, str]:
    """S3's checksums of the whole object by algorithm, lower-case hex; composite checksums are left out.

    ChecksumType tells FULL_OBJECT from COMPOSITE; without it an ETag that ends in `-N` means a multipart upload.
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
    """Algorithms of which the listing names a full-object checksum, whether or not we may read its value."""
    whole = ref.checksum_type == "FULL_OBJECT" or (ref.checksum_type is None and "-" not in ref.etag)
    return frozenset(name.lower() for name in ref.checksum_algorithms) if whole else frozenset()


Headers = Mapping[bytes, bytes]
CHECKSUM_MODE: Final = ("x-amz-checksum-mode", "ENABLED")
"""The request header that asks for checksums."""

_PREFIX: Final = b"x-amz-checksum-"
_TYPE: Final = b"x-amz-checksum-type"
_NAMES: Final = {_PREFIX + name.encode(): name for name in SIZES}
_OF_PARTS: Final = re.compile(rb'-[0-9]+"?$')


def stored(headers: Headers) -> Mapping[str, str]:
    """S3's checksums of the whole object by algorithm, lower-case hex. headers: lower-case names.

    Composite checksums, which are digests of the parts' digests, are left out: S3 says COMPOSITE, or the value ends in
    a number of parts, or a multipart upload names no type. So are values of another length than the algorithm's.
    """
    found = {name: headers[header] for header, name in _NAMES.items() if header in headers}
    if not found or not _of_the_whole(headers):
        return _NONE
    digests = {name: of_base64(value.strip(), name) for name, value in found.items()}
    return {name: digest for name, digest in digests.items() if digest}


def stored_of_reply(reply: Mapping[str, Any]) -> Mapping[str, str]:
    """The same, from a reply of botocore."""
    headers = reply["ResponseMetadata"]["HTTPHeaders"]
    return stored({name.lower().encode(): str(value).encode() for name, value in headers.items()})


def without_validation(client: Any) -> Any:
    """The client, which now asks for the checksums of every whole object that it reads, and does not validate them.

    botocore's own setting for that would digest each body once more while we read it.
    """
    client.meta.events.register("before-call.s3.GetObject", _ask)
    return client


def _ask(params: dict[str, Any], **_: Any) -> None:
    headers = params["headers"]
    if "Range" not in headers:
        name, value = CHECKSUM_MODE
        headers[name] = value


def _of_the_whole(headers: Headers) -> bool:
    kind = headers.get(_TYPE, b"").strip().upper()
    return kind == b"FULL_OBJECT" or (not kind and not _OF_PARTS.search(headers.get(b"etag", b"").strip()))
