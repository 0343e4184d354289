"""HeadObject, GetObject and GetObjectAcl."""

from __future__ import annotations

import re
from email.utils import format_datetime
from typing import Final

from tests.support.servers import stub_xml
from tests.support.servers.stub_buckets import xml
from tests.support.servers.stub_calls import Call, Refused, Reply
from tests.support.servers.world import StubBucket, StubObject, World

CUSTOMER_KEY: Final = "x-amz-server-side-encryption-customer-algorithm"
_RANGE: Final = re.compile(r"bytes=(\d*)-(\d*)")


def get_acl(world: World, bucket: StubBucket, call: Call) -> Reply:
    item = _found(bucket, call)
    _refuse_denied(item, "acl")
    return xml(stub_xml.access_control_policy(world.effective_acl(bucket, item)))


def head_object(world: World, bucket: StubBucket, call: Call) -> Reply:
    item = _readable(bucket, call, "head")
    return Reply(200, {**_headers(item, call), "Content-Length": str(item.size)})


def get_object(world: World, bucket: StubBucket, call: Call) -> Reply:
    item = _readable(bucket, call, "get")
    if item.archived:
        message = "The operation is not valid for the object's storage class"
        raise Refused(403, "InvalidObjectState", message, details=(("StorageClass", item.storage_class),))
    headers = _headers(item, call)
    asked = _RANGE.fullmatch(call.headers.get("range", ""))
    if asked is None or not (asked[1] or asked[2]):
        return Reply(200, headers, item=item, length=item.size)
    start, end = _range(item.size, asked[1], asked[2])
    headers["Content-Range"] = f"bytes {start}-{end - 1}/{item.size}"
    return Reply(206, headers, item=item, start=start, length=end - start)


def _found(bucket: StubBucket, call: Call) -> StubObject:
    """The version that the call names, or S3's answer for one that cannot be read."""
    versions, wanted = bucket.objects.versions(call.key), call.version_id
    if wanted is None:
        if not versions:
            raise _missing(call)
        if versions[0].delete_marker:
            raise _missing(call, {"x-amz-delete-marker": "true", **_version_header(versions[0])})
        return versions[0]
    item = next((version for version in versions if (version.version_id or "null") == wanted), None)
    if item is None:
        details = (("Key", call.key), ("VersionId", wanted))
        raise Refused(404, "NoSuchVersion", "The specified version does not exist.", details=details)
    if item.delete_marker:
        headers = {"x-amz-delete-marker": "true", "Allow": "DELETE", "Last-Modified": _http_date(item)}
        message = "The specified method is not allowed against this resource."
        details = (("Method", call.method), ("ResourceType", "DeleteMarker"))
        raise Refused(405, "MethodNotAllowed", message, {**headers, **_version_header(item)}, details)
    return item


def _readable(bucket: StubBucket, call: Call, action: str) -> StubObject:
    """The version that the call names, after every check that can forbid reading it."""
    item = _found(bucket, call)
    _refuse_denied(item, action)
    if _wants_checksum(call):
        _refuse_denied(item, "checksum")
    if item.sse_c and CUSTOMER_KEY not in call.headers:
        message = (
            "The object was stored using a form of Server Side Encryption. The correct parameters must be provided"
        )
        raise Refused(400, "InvalidRequest", message)
    if call.headers.get("if-match", item.etag).strip('"') not in {item.etag, "*"}:
        message = "At least one of the pre-conditions you specified did not hold"
        raise Refused(412, "PreconditionFailed", message, details=(("Condition", "If-Match"),))
    return item


def _headers(item: StubObject, call: Call) -> dict[str, str]:
    """The headers of HEAD and GET for an object, without Content-Length."""
    headers = {
        "Last-Modified": _http_date(item),
        "ETag": f'"{item.etag}"',
        "Accept-Ranges": "bytes",
        "Content-Type": item.content_type,
        **_version_header(item),
        **_encryption_headers(item),
        **{f"x-amz-meta-{name}": value for name, value in item.metadata.items()},
        **item.headers,
    }
    if item.storage_class != "STANDARD":
        headers["x-amz-storage-class"] = item.storage_class
    if item.restored:
        headers["x-amz-restore"] = 'ongoing-request="false", expiry-date="Tue, 01 Jan 2030 00:00:00 GMT"'
    if _wants_checksum(call) and "range" not in call.headers:
        headers.update({f"x-amz-checksum-{name.lower()}": value for name, value in item.checksums.items()})
        if item.checksum_type:
            headers["x-amz-checksum-type"] = item.checksum_type
    return headers


def _encryption_headers(item: StubObject) -> dict[str, str]:
    if item.sse_c:
        return {CUSTOMER_KEY: "AES256"}
    headers = {}
    if item.sse:
        headers["x-amz-server-side-encryption"] = item.sse
    if item.kms_key:
        headers["x-amz-server-side-encryption-aws-kms-key-id"] = item.kms_key
    if item.bucket_key:
        headers["x-amz-server-side-encryption-bucket-key-enabled"] = "true"
    return headers


def _range(size: int, first: str, last: str) -> tuple[int, int]:
    """[start, end) of a Range header's two numbers, of which one may be absent."""
    if not first:
        start, end = max(size - int(last), 0), size
    else:
        start, end = int(first), min(int(last) + 1, size) if last else size
    if start >= end:
        raise Refused(
            416, "InvalidRange", "The requested range is not satisfiable", {"Content-Range": f"bytes */{size}"}
        )
    return start, end


def _missing(call: Call, headers: dict[str, str] | None = None) -> Refused:
    return Refused(404, "NoSuchKey", "The specified key does not exist.", headers, (("Key", call.key),))


def _refuse_denied(item: StubObject, action: str) -> None:
    if action in item.deny:
        raise Refused(403, "AccessDenied", "Access Denied")


def _wants_checksum(call: Call) -> bool:
    return call.headers.get("x-amz-checksum-mode", "").upper() == "ENABLED"


def _version_header(item: StubObject) -> dict[str, str]:
    return {} if item.version_id is None else {"x-amz-version-id": item.version_id}


def _http_date(item: StubObject) -> str:
    return format_datetime(item.last_modified, usegmt=True)
