"""The XML documents about the computed objects, as in the S3 API reference; those of the bucket are the stub's."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from auditor.model.object import Acl, Grant
from benchmarks.server.objects import BUCKET, OWNER, etag_of, first_after, is_public, key_of, size_of
from tests.support.servers.stub_xml import access_control_policy, document
from tests.support.servers.world import canned

LAST_MODIFIED: Final = "2026-01-02T03:04:05.000Z"
PAGE: Final = 1000


PRIVATE: Final = access_control_policy(Acl(OWNER, canned("private", OWNER)))
PUBLIC: Final = access_control_policy(Acl(OWNER, canned("public-read", OWNER)))


def listing(query: Mapping[str, str], objects: int, size: int | None = None) -> bytes:
    """One page of ListObjectsV2."""
    token, prefix = query.get("continuation-token"), query.get("prefix", "")
    after = base64.b64decode(token).decode() if token else query.get("start-after", "")
    start = first_after(max(after, prefix[:-1]), objects) if after or prefix else 0
    limit = min(PAGE, int(query.get("max-keys", PAGE)))
    end = min(start + limit, objects)
    encode = quote if query.get("encoding-type") == "url" else str
    owner = f"<Owner><ID>{OWNER}</ID></Owner>" if query.get("fetch-owner") == "true" else ""
    rows, last = [], start
    for number in range(start, end):
        key = key_of(number)
        if not key.startswith(prefix):
            break
        rows.append(_row(number, encode(key), owner, size))
        last = number + 1
    cut = last == end < objects
    following = base64.b64encode(key_of(last - 1).encode()).decode() if cut and rows else ""
    next_token = f"<NextContinuationToken>{following}</NextContinuationToken>" if following else ""
    encoding = "<EncodingType>url</EncodingType>" if encode is quote else ""
    head = (
        f"<Name>{BUCKET}</Name><Prefix>{encode(prefix)}</Prefix>{next_token}<KeyCount>{len(rows)}</KeyCount>"
        f"<MaxKeys>{limit}</MaxKeys>{encoding}<IsTruncated>{'true' if following else 'false'}</IsTruncated>"
    )
    return document("ListBucketResult", head + "".join(rows))


def _row(number: int, key: str, owner: str, size: int | None) -> str:
    return (
        f"<Contents><Key>{key}</Key><LastModified>{LAST_MODIFIED}</LastModified>"
        f"<ETag>&quot;{etag_of(number)}&quot;</ETag><ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm>"
        f"<ChecksumType>FULL_OBJECT</ChecksumType><Size>{size_of(number, size)}</Size>{owner}"
        "<StorageClass>STANDARD</StorageClass></Contents>"
    )


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
