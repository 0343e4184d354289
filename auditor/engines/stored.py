"""Digests of the whole object that S3 keeps with it, from the headers of a GetObject's answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from auditor.hexdigests import SIZES, of_base64

Headers = Mapping[bytes, bytes]

CHECKSUM_MODE: Final = ("x-amz-checksum-mode", "ENABLED")
"""The header that asks for them."""
_PREFIX: Final = b"x-amz-checksum-"
_TYPE: Final = b"x-amz-checksum-type"
_NAMES: Final = {_PREFIX + name.encode(): name for name in SIZES}
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
