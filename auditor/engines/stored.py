"""Digests of the whole object that S3 keeps with it, from the headers of a GetObject's answer."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final

Headers = Mapping[bytes, bytes]

CHECKSUM_MODE: Final = ("x-amz-checksum-mode", "ENABLED")
"""The header that asks for them."""
_PREFIX: Final = b"x-amz-checksum-"
_TYPE: Final = b"x-amz-checksum-type"
_SIZES: Final = {
    "sha256": 32,
    "sha1": 20,
    "sha512": 64,
    "md5": 16,
    "crc64nvme": 8,
    "crc32": 4,
    "crc32c": 4,
    "xxhash64": 8,
    "xxhash3": 8,
    "xxhash128": 16,
}
"""Bytes of each digest (GetObject, S3 API reference)."""
_NAMES: Final = {_PREFIX + name.encode(): name for name in _SIZES}
_OF_PARTS: Final = re.compile(rb'-[0-9]+"?$')
_NONE: Final[Mapping[str, str]] = {}


def stored(headers: Headers) -> Mapping[str, str]:
    """Algorithm to lower-case hex; lower-case names of headers.

    Composite ones, which are digests of the parts' digests, are left out: those that S3 calls so, those that end in a
    number of parts, and those of a multipart upload whose kind is not told. So is what has not its algorithm's length.
    """
    found = {name: headers[header] for header, name in _NAMES.items() if header in headers}
    if not found or not _of_the_whole(headers):
        return _NONE
    digests = {name: _hex(value, _SIZES[name]) for name, value in found.items()}
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


def _hex(value: bytes, size: int) -> str:
    try:
        digest = base64.b64decode(value.strip(), validate=True)
    except binascii.Error:
        return ""
    return digest.hex() if len(digest) == size else ""
