"""The computed objects and their XML documents, as in the S3 API reference; those of the bucket are the stub's."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from auditor.model.object import Acl, Grant
from benchmarks.server.objects import BUCKET, OWNER, etag_of, is_public, keys_of, size_of
from tests.support.servers.computed import ComputedObjects
from tests.support.servers.stub_xml import access_control_policy, document
from tests.support.servers.world import StubObject, canned

LAST_MODIFIED: Final = "2026-01-02T03:04:05.000Z"
PAGE: Final = 1000
PRIVATE: Final = access_control_policy(Acl(OWNER, canned("private", OWNER)))
PUBLIC: Final = access_control_policy(Acl(OWNER, canned("public-read", OWNER)))
_CHECKSUMS: Final = {"CRC64NVME": "AAAAAAAAAAA="}


def measured(objects: int, size: int | None = None) -> ComputedObjects:
    """So many objects, as the bucket's listing has them."""

    def make(number: int, key: str) -> StubObject:
        return StubObject(
            key=key,
            body=None,
            size=size_of(number, size),
            etag=etag_of(number),
            checksums=_CHECKSUMS,
            checksum_type="FULL_OBJECT",
        )

    return ComputedObjects(keys_of(objects), make)


def acl_of(number: int, strangers: int = 0) -> bytes:
    if strangers:
        grants = (*canned("private", OWNER), Grant(f"{number % strangers:064x}", "READ"))
        return access_control_policy(Acl(OWNER, grants))
    return PUBLIC if is_public(number) else PRIVATE


def upload_begun(key: str) -> bytes:
    inner = f"<Bucket>{BUCKET}</Bucket><Key>{quote(key)}</Key><UploadId>stub-upload</UploadId>"
    return document("InitiateMultipartUploadResult", inner)


def upload_ended(key: str) -> bytes:
    inner = f"<Bucket>{BUCKET}</Bucket><Key>{quote(key)}</Key><ETag>&quot;{'e' * 32}-2&quot;</ETag>"
    return document("CompleteMultipartUploadResult", inner)
