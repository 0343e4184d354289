"""Parse the headers of an answer of HeadObject or GetObject. The functions are pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from auditor.errors import CallFailed
from auditor.model.dates import http_date_in_utc, iso_date, seconds_in_utc
from auditor.model.object import Head
from auditor.s3.checksums import stored
from auditor.s3.engines.base import Span

Headers = Mapping[bytes, bytes]

_META: Final = b"x-amz-meta-"
_DIGITS: Final = 18
"""Largest number of digits of a number, so that it fits into 64 bits."""


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
