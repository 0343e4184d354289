"""Parse the headers of an answer of HeadObject or GetObject, and botocore's replies, into facts. The functions are
pure, and raise CallFailed (Malformed) if a needed element is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import unquote_plus

from auditor.errors import CallFailed
from auditor.model.dates import http_date_in_utc, iso_date, seconds_in_utc
from auditor.model.object import ALL_USERS, Acl, Grant, Head, ObjectRef
from auditor.s3.checksums import stored
from auditor.s3.engines.base import ListQuery, Page, Position, Span

Headers = Mapping[bytes, bytes]

_META: Final = b"x-amz-meta-"
_DIGITS: Final = 18
"""Largest number of digits of a number, so that it fits into 64 bits."""

Reply = Mapping[str, Any]

PERMISSIONS: Final = frozenset({"READ", "WRITE", "READ_ACP", "WRITE_ACP", "FULL_CONTROL"})
"""All permissions of a grant (Grant, S3 API reference)."""

_GROUPS: Final = {"all-users": ALL_USERS}
"""Groups that one other server (versitygw) names by an ID, not by a URI: the URI by the ID. AWS has no canonical ID of
this form."""


def text(value: bytes) -> str:
    """Decode a header's value as UTF-8, or as Latin-1 if it is not UTF-8 (RFC 9110)."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def texts(headers: Headers) -> dict[str, str]:
    """Decode the names and the values of all headers."""
    return {text(name): text(value) for name, value in headers.items()}


def unquoted(value: str) -> str:
    return value.strip('"')


def number(value: str) -> int:
    """Parse a number of ASCII digits without a sign, of a length that every reader of the lines can hold. Raises
    ValueError.
    """
    if not value.isdigit() or len(value) > _DIGITS:
        raise ValueError(f"{value[:_DIGITS]!r} is not a number of at most {_DIGITS} digits")
    return int(value.encode("ascii"))  # int() alone would also accept digits of other scripts


def _iso_date(value: str) -> str:
    return seconds_in_utc(iso_date(value))


def _boolean(value: str) -> bool:
    return value == "true"


_CONVERTED: Final[Mapping[bytes, tuple[str, Callable[[str], Any]]]] = {
    b"etag": ("etag", unquoted),
    b"content-length": ("content_length", number),
    b"last-modified": ("last_modified", http_date_in_utc),
    b"x-amz-missing-meta": ("missing_meta", number),
    b"x-amz-server-side-encryption-bucket-key-enabled": ("bucket_key_enabled", _boolean),
    b"x-amz-mp-parts-count": ("parts_count", number),
    b"x-amz-tagging-count": ("tag_count", number),
    b"x-amz-object-lock-retain-until-date": ("object_lock_retain_until_date", _iso_date),
    b"x-amz-object-lock-event-hold-duration-days": ("object_lock_event_hold_duration_days", number),
    b"x-amz-object-lock-event-hold-duration-years": ("object_lock_event_hold_duration_years", number),
}
"""By header: the field of Head, and the function that converts the text to it (HeadObject, S3 API reference)."""
_TEXTS: Final[Mapping[bytes, str]] = {
    b"content-type": "content_type",
    b"content-encoding": "content_encoding",
    b"content-disposition": "content_disposition",
    b"content-language": "content_language",
    b"cache-control": "cache_control",
    b"expires": "expires",
    b"x-amz-version-id": "version_id",
    b"x-amz-storage-class": "storage_class",
    b"x-amz-server-side-encryption": "server_side_encryption",
    b"x-amz-server-side-encryption-aws-kms-key-id": "sse_kms_key_id",
    b"x-amz-server-side-encryption-customer-algorithm": "sse_customer_algorithm",
    b"x-amz-checksum-type": "checksum_type",
    b"x-amz-checksum-crc32": "checksum_crc32",
    b"x-amz-checksum-crc32c": "checksum_crc32c",
    b"x-amz-checksum-crc64nvme": "checksum_crc64nvme",
    b"x-amz-checksum-sha1": "checksum_sha1",
    b"x-amz-checksum-sha256": "checksum_sha256",
    b"x-amz-checksum-sha512": "checksum_sha512",
    b"x-amz-checksum-md5": "checksum_md5",
    b"x-amz-checksum-xxhash64": "checksum_xxhash64",
    b"x-amz-checksum-xxhash3": "checksum_xxhash3",
    b"x-amz-checksum-xxhash128": "checksum_xxhash128",
    b"x-amz-website-redirect-location": "website_redirect_location",
    b"x-amz-replication-status": "replication_status",
    b"x-amz-object-lock-mode": "object_lock_mode",
    b"x-amz-object-lock-legal-hold": "object_lock_legal_hold_status",
    b"x-amz-object-lock-event-hold": "object_lock_event_hold",
    b"x-amz-restore": "restore",
    b"x-amz-archive-status": "archive_status",
    b"x-amz-expiration": "expiration",
}
"""By header: the field of Head, for values that stay text."""
_PLACES: Final[Mapping[str, int]] = {name: place for place, name in enumerate(Head.__struct_fields__)}
_ETAG, _LENGTH, _METADATA = (_PLACES[name] for name in ("etag", "content_length", "metadata"))
_TEXT_AT: Final[Mapping[bytes, int]] = {header: _PLACES[member] for header, member in _TEXTS.items()}
_CONVERTED_AT: Final[Mapping[bytes, tuple[int, Callable[[str], Any]]]] = {
    header: (_PLACES[member], convert) for header, (member, convert) in _CONVERTED.items()
}


def head(headers: Headers) -> Head:
    """Make a Head from the headers of HeadObject's answer.

    Raises CallFailed (Malformed) if ETag or length is missing, or if a value cannot be parsed.
    """
    try:
        values = _values(headers, bytes.decode)
    except UnicodeDecodeError:
        values = _values(headers, text)
    _require("HeadObject", values[_ETAG], values[_LENGTH])
    return Head(*values)


def _values(headers: Headers, decode: Callable[[bytes], str]) -> list[Any]:
    """Return the values of a Head in the order of its fields: positional arguments take half the time of named ones."""
    metadata: dict[str, str] = {}
    values: list[Any] = [None] * len(_PLACES)
    values[_METADATA] = metadata
    texts, converted = _TEXT_AT, _CONVERTED_AT
    for name, value in headers.items():
        if name in texts:
            values[texts[name]] = decode(value)
        elif name in converted:
            place, convert = converted[name]
            written = decode(value)
            try:
                values[place] = convert(written)
            except (ValueError, TypeError, OverflowError) as error:
                raise malformed("HeadObject", f"{text(name)[:100]}: {error}") from error
        elif name.startswith(_META):
            metadata[decode(name[len(_META) :])] = decode(value)
    return values


def length_and_etag(action: str, headers: Headers) -> tuple[int, str]:
    """Return the body's length in bytes, and the ETag without quotes.

    Raises CallFailed (Malformed) if the length or the ETag is missing, or if the length is not a number.
    """
    etag, length = headers.get(b"etag"), headers.get(b"content-length")
    _require(action, etag, length)
    try:
        return int(length or b""), unquoted(text(etag or b""))
    except ValueError as error:
        raise malformed(action, str(error)) from error


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
    raise malformed("GetObject", f"another span than asked for: {str(content_range)[:100]!r}")


def body_facts(headers: Headers, span: Span | None) -> tuple[int, str, Mapping[str, str]]:
    """Return the length, the ETag and S3's checksums of a body, as Body has them, from the headers of GetObject's
    answer.

    Raises CallFailed (Malformed) for an answer without length or ETag, or with another byte range than asked for.
    """
    content_range = headers.get(b"content-range")
    check_span(None if content_range is None else text(content_range), span)
    return *length_and_etag("GetObject", headers), {} if span else stored(headers)


def _require(action: str, etag: object, length: object) -> None:
    if etag is None or length is None:
        raise malformed(action, f"{'ETag' if etag is None else 'ContentLength'} is missing")


def malformed(action: str, message: str) -> CallFailed:
    return CallFailed(action, "Malformed", 200, message[:500])


def iso(moment: Any) -> str:
    """Return a date as ISO 8601 text in UTC, to the second. moment: a datetime; a text is returned as it is."""
    return seconds_in_utc(moment) if isinstance(moment, datetime) else str(moment)


def required(action: str, reply: Reply, *names: str) -> Any:
    """Return an element of the reply. Raises CallFailed with the code Malformed if the reply lacks it.

    names: of the element, after those of the elements around it.
    """
    value: Any = reply
    for name in names:
        value = value.get(name)
        if value is None:
            raise CallFailed(action, "Malformed", 200, f"{name} is missing")
    return value


def acl(action: str, reply: Reply) -> Acl:
    """Parse a reply of GetObjectAcl or GetBucketAcl: `Owner.ID`, and `Grants`, each with a grantee and a permission.

    Blanks around a value are removed: some servers indent their XML, and the URI of AllUsers has to be recognised.
    """
    owner = required(action, reply, "Owner", "ID")
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
        raise CallFailed(action, "Malformed", 200, f"{permission[:40]!r} is not a permission")
    return Grant(name, permission)


def page(query: ListQuery, reply: Reply) -> Page:
    """Parse a page of ListObjectsV2 or ListObjectVersions into a Page. Raises CallFailed (Malformed)."""
    action, versions = query.action, query.versions
    decode = _decoder(action, reply)
    following = None
    if required(action, reply, "IsTruncated") and versions:
        marker = decode(str(required(action, reply, "NextKeyMarker")))
        following = Position(key_marker=marker, version_id_marker=reply.get("NextVersionIdMarker") or None)
    elif reply["IsTruncated"]:
        following = Position(token=str(required(action, reply, "NextContinuationToken")))
    refs = tuple(_ref(action, entry, decode) for entry in reply.get("Versions" if versions else "Contents", ()))
    markers = reply.get("DeleteMarkers", ()) if versions else ()
    return Page(refs, following, tuple(decode(str(required(action, entry, "Key"))) for entry in markers))


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
