"""The digests of a whole object that S3 itself stores: in HeadObject, in GetObject, promised by the listing."""

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


Headers = Mapping[bytes, bytes]
CHECKSUM_MODE: Final = ("x-amz-checksum-mode", "ENABLED")
"""The header that asks for them."""

_PREFIX: Final = b"x-amz-checksum-"
_TYPE: Final = b"x-amz-checksum-type"
_NAMES: Final = {_PREFIX + name.encode(): name for name in SIZES}
_OF_PARTS: Final = re.compile(rb'-[0-9]+"?$')


def stored(headers: Headers) -> Mapping[str, str]:
    """Algorithm to lower-case hex; lower-case names of headers.

    Composite ones, which are digests of the parts' digests, are left out: those that S3 calls so, those that end in a
    number of parts, and those of a multipart upload whose kind is not told. So is what has not its algorithm's length.
    """
    found = {name: headers[header] for header, name in _NAMES.items() if header in headers}
    if not found or not _of_the_whole(headers):
        return _NONE
    digests = {name: of_base64(value.strip(), name) for name, value in found.items()}
    return {name: digest for name, digest in digests.items() if digest}


def stored_of_reply(reply: Mapping[str, Any]) -> Mapping[str, str]:
    """The same, from what botocore made of the answer."""
    headers = reply["ResponseMetadata"]["HTTPHeaders"]
    return stored({name.lower().encode(): str(value).encode() for name, value in headers.items()})


def without_validation(client: Any) -> Any:
    """The client, which asks for the digests of every whole object that it reads, and leaves them to us.

    Where botocore itself is told to ask, it digests each body once more while it is read.
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
