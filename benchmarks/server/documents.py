"""The XML documents of the answers, as in the S3 API reference."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from benchmarks.server.objects import BUCKET, OWNER, etag_of, first_after, is_public, key_of, size_of

XML: Final = b'<?xml version="1.0" encoding="UTF-8"?>\n'
SPACE: Final = b' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
LAST_MODIFIED: Final = "2026-01-02T03:04:05.000Z"
PAGE: Final = 1000


def _document(root: bytes, inner: bytes) -> bytes:
    return b"%b<%b%b>%b</%b>" % (XML, root, SPACE, inner, root)


def error(code: str, message: str) -> bytes:
    return (
        XML
        + (
            f"<Error><Code>{code}</Code><Message>{message}</Message>"
            "<RequestId>4442587FB7D0A2F9</RequestId><HostId>stub</HostId></Error>"
        ).encode()
    )


def _grant(kind: str, grantee: str, permission: str) -> str:
    name = "URI" if kind == "Group" else "ID"
    return (
        f'<Grant><Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="{kind}">'
        f"<{name}>{grantee}</{name}></Grantee><Permission>{permission}</Permission></Grant>"
    )


def _acl(*grants: str) -> bytes:
    inner = f"<Owner><ID>{OWNER}</ID></Owner><AccessControlList>{''.join(grants)}</AccessControlList>"
    return _document(b"AccessControlPolicy", inner.encode())


_OWNERS: Final = _grant("CanonicalUser", OWNER, "FULL_CONTROL")
PRIVATE: Final = _acl(_OWNERS)
PUBLIC: Final = _acl(_OWNERS, _grant("Group", "http://acs.amazonaws.com/groups/global/AllUsers", "READ"))

QUESTIONS: Final[Mapping[str, tuple[int, bytes]]] = {
    "acl": (200, PRIVATE),
    "ownershipControls": (
        200,
        _document(b"OwnershipControls", b"<Rule><ObjectOwnership>ObjectWriter</ObjectOwnership></Rule>"),
    ),
    "publicAccessBlock": (404, error("NoSuchPublicAccessBlockConfiguration", "There is none")),
    "policy": (404, error("NoSuchBucketPolicy", "The bucket policy does not exist")),
    "policyStatus": (404, error("NoSuchBucketPolicy", "The bucket policy does not exist")),
    "versioning": (200, _document(b"VersioningConfiguration", b"")),
    "encryption": (
        200,
        _document(
            b"ServerSideEncryptionConfiguration",
            b"<Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm>"
            b"</ApplyServerSideEncryptionByDefault></Rule>",
        ),
    ),
    "requestPayment": (200, _document(b"RequestPaymentConfiguration", b"<Payer>BucketOwner</Payer>")),
    "location": (200, _document(b"LocationConstraint", b"")),
}
"""The answers to bucket settings, by sub-resource."""

BUCKETS: Final = _document(
    b"ListAllMyBucketsResult",
    f"<Owner><ID>{OWNER}</ID></Owner><Buckets><Bucket><Name>{BUCKET}</Name>"
    "<CreationDate>2026-01-01T00:00:00.000Z</CreationDate></Bucket></Buckets>".encode(),
)


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
    return _document(b"ListBucketResult", (head + "".join(rows)).encode())


def _row(number: int, key: str, owner: str, size: int | None) -> str:
    return (
        f"<Contents><Key>{key}</Key><LastModified>{LAST_MODIFIED}</LastModified>"
        f"<ETag>&quot;{etag_of(number)}&quot;</ETag><ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm>"
        f"<ChecksumType>FULL_OBJECT</ChecksumType><Size>{size_of(number, size)}</Size>{owner}"
        "<StorageClass>STANDARD</StorageClass></Contents>"
    )


def acl_of(number: int, strangers: int = 0) -> bytes:
    if strangers:
        return _acl(_OWNERS, _grant("CanonicalUser", f"{number % strangers:064x}", "READ"))
    return PUBLIC if is_public(number) else PRIVATE


def upload_begun(key: str) -> bytes:
    inner = f"<Bucket>{BUCKET}</Bucket><Key>{quote(key)}</Key><UploadId>stub-upload</UploadId>"
    return _document(b"InitiateMultipartUploadResult", inner.encode())


def upload_ended(key: str) -> bytes:
    inner = f"<Bucket>{BUCKET}</Bucket><Key>{quote(key)}</Key><ETag>&quot;{'e' * 32}-2&quot;</ETag>"
    return _document(b"CompleteMultipartUploadResult", inner.encode())
