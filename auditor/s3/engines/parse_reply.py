"""Parse botocore's replies into facts. The functions raise CallFailed (Malformed) if a needed element is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import unquote_plus

from auditor.errors import CallFailed
from auditor.model.dates import seconds_in_utc
from auditor.model.object import ALL_USERS, Acl, Grant, Head, ObjectRef
from auditor.s3.engines.base import ListQuery, Page, Position, Span
from auditor.s3.engines.parse_headers import NEWER, malformed, newer, number

Reply = Mapping[str, Any]

PERMISSIONS: Final = frozenset({"READ", "WRITE", "READ_ACP", "WRITE_ACP", "FULL_CONTROL"})
"""All permissions of a grant (Grant, S3 API reference)."""


_GROUPS: Final = {"all-users": ALL_USERS}
"""Groups that one other server (versitygw) names by an ID, not by a URI: the URI by the ID. AWS has no canonical ID of
this form."""


def iso(moment: Any) -> str:
    """Return a date as ISO 8601 text in UTC, to the second. moment: a datetime; a text is returned as it is."""
    return seconds_in_utc(moment) if isinstance(moment, datetime) else str(moment)


def _iso_or_none(moment: Any) -> str | None:
    return None if moment is None else iso(moment)


def unquoted(etag: str) -> str:
    return etag.strip('"')


def required(action: str, reply: Reply, name: str) -> Any:
    """Return an element of the reply. Raises CallFailed with the code Malformed if the reply lacks it."""
    value = reply.get(name)
    if value is None:
        raise CallFailed(action, "Malformed", 200, f"{name} is missing")
    return value


def acl(action: str, reply: Reply) -> Acl:
    """Parse a reply of GetObjectAcl or GetBucketAcl: `Owner.ID`, and `Grants`, each with a grantee and a permission.

    Blanks around a value are removed: some servers indent their XML, and the URI of AllUsers has to be recognised.
    """
    owner = required(action, required(action, reply, "Owner"), "ID")
    return Acl(str(owner).strip(), tuple(_grant(action, grant) for grant in required(action, reply, "Grants")))


def _grant(action: str, grant: Reply) -> Grant:
    grantee = required(action, grant, "Grantee")
    name = str(grantee.get("URI") or grantee.get("ID") or "").strip()
    name = _GROUPS.get(name, name)
    if not name:
        raise CallFailed(action, "Malformed", 200, "a grantee without ID or URI")
    permission = str(required(action, grant, "Permission")).strip()
    if permission not in PERMISSIONS:
        # No rule would match it, so the object would look safe.
        raise CallFailed(action, "Malformed", 200, f"{permission[:40]!r} is no permission")
    return Grant(name, permission)


_HEAD_MEMBERS = {
    "content_type": "ContentType",
    "content_encoding": "ContentEncoding",
    "content_disposition": "ContentDisposition",
    "content_language": "ContentLanguage",
    "cache_control": "CacheControl",
    "expires": "ExpiresString",
    "missing_meta": "MissingMeta",
    "version_id": "VersionId",
    "storage_class": "StorageClass",
    "server_side_encryption": "ServerSideEncryption",
    "sse_kms_key_id": "SSEKMSKeyId",
    "bucket_key_enabled": "BucketKeyEnabled",
    "sse_customer_algorithm": "SSECustomerAlgorithm",
    "checksum_type": "ChecksumType",
    "checksum_crc32": "ChecksumCRC32",
    "checksum_crc32c": "ChecksumCRC32C",
    "checksum_crc64nvme": "ChecksumCRC64NVME",
    "checksum_sha1": "ChecksumSHA1",
    "checksum_sha256": "ChecksumSHA256",
    "website_redirect_location": "WebsiteRedirectLocation",
    "replication_status": "ReplicationStatus",
    "parts_count": "PartsCount",
    "tag_count": "TagCount",
    "object_lock_mode": "ObjectLockMode",
    "object_lock_legal_hold_status": "ObjectLockLegalHoldStatus",
    "restore": "Restore",
    "archive_status": "ArchiveStatus",
    "expiration": "Expiration",
}


def as_sent(text: str) -> str:
    """Return a header's text without the blanks around it. Such blanks have no meaning (RFC 9110)."""
    return text.strip(" \t")


def from_latin_1(text: str) -> str:
    """Decode a header again as UTF-8, if it is valid UTF-8: http.client has decoded it as Latin-1."""
    if text.isascii():
        return as_sent(text)
    try:
        return as_sent(text.encode("latin-1").decode())
    except UnicodeError:
        return as_sent(text)


def head(reply: Reply, text: Callable[[str], str] = as_sent) -> Head:
    """Parse a reply of HeadObject. `Expires` stays the text that S3 sent, even if it is not a valid date. The headers
    that the model of an older botocore does not know are read from the answer itself, whichever botocore is installed.

    text: called with each text of a header as the SDK decoded it; returns the text as S3 meant it, such as
    from_latin_1().
    """
    found = {name: reply.get(member) for name, member in _HEAD_MEMBERS.items()}
    members: dict[str, Any] = {name: _member(value, text) for name, value in found.items()}
    headers = reply.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    members |= newer({name: text(headers[name]) for name in NEWER if name in headers})
    return Head(
        etag=unquoted(required("HeadObject", reply, "ETag")),
        content_length=_member(int(required("HeadObject", reply, "ContentLength")), text),
        last_modified=_iso_or_none(reply.get("LastModified")),
        object_lock_retain_until_date=_iso_or_none(reply.get("ObjectLockRetainUntilDate")),
        metadata={str(name).lower(): text(str(value)) for name, value in reply.get("Metadata", {}).items()},
        **members,
    )


def _member(value: Any, text: Callable[[str], str]) -> Any:
    if type(value) is not int:
        return text(value) if isinstance(value, str) else value
    try:
        return number(str(value))
    except ValueError as error:
        raise malformed("HeadObject", str(error)) from error


def check_span(content_range: str | None, span: Span | None) -> None:
    """Raise CallFailed (Malformed) if GetObject's answer has another byte range than asked for.

    The bytes of another range would give a wrong hash. content_range: the header Content-Range. span: the range that
    was asked for; None for the whole object.
    """
    if span is None:
        if content_range is None:
            return
    elif content_range is not None and content_range.startswith(f"bytes {span.first}-"):
        last = content_range.partition("-")[2].partition("/")[0]
        if last.isdecimal() and (span.last is None or int(last) <= span.last):
            return
    raise CallFailed("GetObject", "Malformed", 200, f"another span than asked for: {str(content_range)[:100]!r}")


def length_and_etag(reply: Reply) -> tuple[int, str]:
    """Return the length of GetObject's body in bytes, and the ETag without quotes.

    Raises CallFailed (Malformed) if the length or the ETag is missing.
    """
    action = "GetObject"
    return int(required(action, reply, "ContentLength")), unquoted(str(required(action, reply, "ETag")))


def page(query: ListQuery, reply: Reply) -> Page:
    """Parse a page of ListObjectsV2 or ListObjectVersions into a Page. Raises CallFailed (Malformed)."""
    return _versions_page(reply) if query.versions else _objects_page(reply)


def _decoder(action: str, reply: Reply) -> Callable[[str], str]:
    """Return the function that decodes the keys of this listing, as its EncodingType requires.

    With EncodingType=url, "+" stands for a space. A key that is not UTF-8 is refused: with replaced bytes it would name
    a wrong object, or none.
    """

    def decode(text: str) -> str:
        try:
            return unquote_plus(text, errors="strict")
        except UnicodeDecodeError as error:
            raise CallFailed(action, "Malformed", 200, f"the key {text[:100]!r} is not UTF-8") from error

    return decode if reply.get("EncodingType") == "url" else str


def _objects_page(reply: Reply) -> Page:
    action = "ListObjectsV2"
    decode = _decoder(action, reply)
    following = None
    if required(action, reply, "IsTruncated"):
        following = Position(token=str(required(action, reply, "NextContinuationToken")))
    return Page(tuple(_ref(action, entry, decode) for entry in reply.get("Contents", ())), following)


def _versions_page(reply: Reply) -> Page:
    action = "ListObjectVersions"
    decode = _decoder(action, reply)
    following = None
    if required(action, reply, "IsTruncated"):
        marker = decode(str(required(action, reply, "NextKeyMarker")))
        following = Position(key_marker=marker, version_id_marker=reply.get("NextVersionIdMarker") or None)
    return Page(
        tuple(_ref(action, entry, decode) for entry in reply.get("Versions", ())),
        following,
        tuple(decode(str(required(action, entry, "Key"))) for entry in reply.get("DeleteMarkers", ())),
    )


def _ref(action: str, entry: Reply, decode: Callable[[str], str]) -> ObjectRef:
    key = decode(str(required(action, entry, "Key")))
    if not key:
        raise CallFailed(action, "Malformed", 200, "a key is empty")
    owner = entry.get("Owner") or {}
    restore = entry.get("RestoreStatus") or {}
    return ObjectRef(
        key=key,
        etag=unquoted(str(required(action, entry, "ETag"))),
        size=int(required(action, entry, "Size")),
        last_modified=iso(required(action, entry, "LastModified")),
        version_id=str(required(action, entry, "VersionId")) if action == "ListObjectVersions" else None,
        storage_class=str(entry.get("StorageClass") or "STANDARD"),
        owner=owner.get("ID") or None,
        is_latest=bool(entry.get("IsLatest", True)),
        checksum_algorithms=tuple(entry.get("ChecksumAlgorithm", ())),
        checksum_type=entry.get("ChecksumType"),
        restored=bool(restore.get("RestoreExpiryDate")) and not restore.get("IsRestoreInProgress", False),
    )
