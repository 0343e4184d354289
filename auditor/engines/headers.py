"""From the headers of an answer to our facts, pure; what S3 says of an object is read in one pass over what it sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from auditor.dates import http_date, iso_date, seconds_in_utc
from auditor.errors import CallFailed
from auditor.models import Head

Headers = Mapping[bytes, bytes]

_META: Final = b"x-amz-meta-"


def text(value: bytes) -> str:
    """A header as it was sent, without the blanks around it: UTF-8, or Latin-1 where it is not that (RFC 9110)."""
    value = value.strip(b" \t")
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def etag(value: bytes) -> str:
    return text(value).strip('"')


def _http_date(value: bytes) -> str:
    return seconds_in_utc(http_date(text(value)))


def _iso_date(value: bytes) -> str:
    return seconds_in_utc(iso_date(text(value)))


def _boolean(value: bytes) -> bool:
    return text(value) == "true"


_MEMBERS: Final[Mapping[bytes, tuple[str, Callable[[bytes], Any]]]] = {
    b"etag": ("etag", etag),
    b"content-length": ("content_length", int),
    b"last-modified": ("last_modified", _http_date),
    b"content-type": ("content_type", text),
    b"content-encoding": ("content_encoding", text),
    b"content-disposition": ("content_disposition", text),
    b"content-language": ("content_language", text),
    b"cache-control": ("cache_control", text),
    b"expires": ("expires", text),
    b"x-amz-missing-meta": ("missing_meta", int),
    b"x-amz-version-id": ("version_id", text),
    b"x-amz-storage-class": ("storage_class", text),
    b"x-amz-server-side-encryption": ("server_side_encryption", text),
    b"x-amz-server-side-encryption-aws-kms-key-id": ("sse_kms_key_id", text),
    b"x-amz-server-side-encryption-bucket-key-enabled": ("bucket_key_enabled", _boolean),
    b"x-amz-server-side-encryption-customer-algorithm": ("sse_customer_algorithm", text),
    b"x-amz-checksum-type": ("checksum_type", text),
    b"x-amz-checksum-crc32": ("checksum_crc32", text),
    b"x-amz-checksum-crc32c": ("checksum_crc32c", text),
    b"x-amz-checksum-crc64nvme": ("checksum_crc64nvme", text),
    b"x-amz-checksum-sha1": ("checksum_sha1", text),
    b"x-amz-checksum-sha256": ("checksum_sha256", text),
    b"x-amz-website-redirect-location": ("website_redirect_location", text),
    b"x-amz-replication-status": ("replication_status", text),
    b"x-amz-mp-parts-count": ("parts_count", int),
    b"x-amz-tagging-count": ("tag_count", int),
    b"x-amz-object-lock-mode": ("object_lock_mode", text),
    b"x-amz-object-lock-retain-until-date": ("object_lock_retain_until_date", _iso_date),
    b"x-amz-object-lock-legal-hold": ("object_lock_legal_hold_status", text),
    b"x-amz-restore": ("restore", text),
    b"x-amz-archive-status": ("archive_status", text),
    b"x-amz-expiration": ("expiration", text),
}
"""HeadObject's members by their header (HeadObject, S3 API reference)."""


def head(headers: Headers) -> Head:
    """HeadObject's answer; raises CallFailed Malformed without an ETag or a length, or for a number that is none."""
    found: dict[str, Any] = {}
    metadata: dict[str, str] = {}
    members = _MEMBERS
    try:
        for name, value in headers.items():
            member = members.get(name)
            if member is not None:
                found[member[0]] = member[1](value)
            elif name.startswith(_META):
                metadata[text(name[len(_META) :])] = text(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise malformed("HeadObject", f"{text(name)[:100]}: {error}") from error
    _require("HeadObject", found)
    return Head(metadata=metadata, **found)


def length_and_etag(action: str, headers: Headers) -> tuple[int, str]:
    """The body's length in bytes, and the object's ETag without quotes; raises CallFailed Malformed."""
    try:
        found: dict[str, Any] = {
            member: convert(headers[name])
            for name in (b"etag", b"content-length")
            if name in headers
            for member, convert in (_MEMBERS[name],)
        }
    except ValueError as error:
        raise malformed(action, str(error)) from error
    _require(action, found)
    return found["content_length"], found["etag"]


def _require(action: str, found: Mapping[str, Any]) -> None:
    for member, name in (("etag", "ETag"), ("content_length", "ContentLength")):
        if member not in found:
            raise malformed(action, f"{name} is missing")


def malformed(action: str, message: str) -> CallFailed:
    return CallFailed(action, "Malformed", 200, message[:500])
