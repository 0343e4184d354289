"""One event of S3's, in either of the two forms that S3 writes, read strictly where it matters to us.

Sources: S3 User Guide, notification-content-structure, notification-how-to-event-types-and-destinations, ev-events.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal
from urllib.parse import unquote_plus

from auditor.errors import MessageError
from auditor.hashing.queue.message import (
    MAX_OBJECTS,
    as_object,
    bucket_name,
    plain_text,
    sequencer_of,
    text,
    whole_number,
)
from auditor.model.dates import iso_date, seconds_in_utc
from auditor.text import visible

log = logging.getLogger(__name__)

Kind = Literal["created", "restored", "hidden", "removed"]
"""hidden: by a delete marker. removed: for good, the whole key where there are no versions, else one version."""

_KINDS: Final[dict[str, Kind]] = {
    "ObjectCreated:Put": "created",
    "ObjectCreated:Post": "created",
    "ObjectCreated:Copy": "created",
    "ObjectCreated:CompleteMultipartUpload": "created",
    "ObjectRestore:Completed": "restored",
    "ObjectRemoved:Delete": "removed",
    "ObjectRemoved:DeleteMarkerCreated": "hidden",
    "LifecycleExpiration:Delete": "removed",
    "LifecycleExpiration:DeleteMarkerCreated": "hidden",
}
_DETAIL_TYPES: Final[dict[str, Kind]] = {"Object Created": "created", "Object Restore Completed": "restored"}
_DELETIONS: Final[dict[str, Kind]] = {"Delete Marker Created": "hidden", "Permanently Deleted": "removed"}
_LOST: Final = "ReducedRedundancyLostObject"
_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class ObjectEvent:
    """One event of one object. etag, size: of what can be hashed only."""

    kind: Kind
    bucket: str
    key: str
    version_id: str | None
    sequencer: str
    at: str
    etag: str = ""
    size: int = 0


def from_records(records: list[Any], received: str) -> Iterator[ObjectEvent]:
    """Keys are form-urlencoded there: a space is "+" (S3 User Guide, notification-content-structure)."""
    if len(records) > MAX_OBJECTS:
        raise MessageError(f"Records has {len(records)} entries, more than {MAX_OBJECTS}")
    for index, value in enumerate(records):
        name = f"Records[{index}]"
        record = as_object(value, name)
        if record.get("eventSource") != "aws:s3":
            raise MessageError(f"{name}.eventSource is not aws:s3")
        _check_version(record, "eventVersion", f"{name}.eventVersion", "2")
        event = text(record, "eventName", f"{name}.eventName").removeprefix("s3:")
        kind = _KINDS.get(event) or ("created" if event.startswith("ObjectCreated:") else None)
        if kind is None and event != _LOST:
            _ignore(event)
            continue
        s3 = as_object(record.get("s3"), f"{name}.s3")
        bucket = bucket_name(as_object(s3.get("bucket"), f"{name}.s3.bucket"), "name", f"{name}.s3.bucket.name")
        entry = dict(as_object(s3.get("object"), f"{name}.s3.object"))
        entry["key"] = _unquote(entry.get("key"), f"{name}.s3.object.key")
        at = _time(record, "eventTime", f"{name}.eventTime", received)
        if kind is None:
            _warn_of_loss(bucket, text(entry, "key", f"{name}.s3.object.key"))
        else:
            yield _event(kind, bucket, entry, f"{name}.s3.object", ("eTag", "versionId"), at)


def from_event_bridge(document: dict[str, Any], received: str) -> Iterator[ObjectEvent]:
    """Keys are raw there, `%` and `+` included."""
    if document.get("source") != "aws.s3":
        raise MessageError("source is not aws.s3")
    event = text(document, "detail-type", "detail-type")
    if event != "Object Deleted" and event not in _DETAIL_TYPES:
        _ignore(event)
        return
    detail = as_object(document.get("detail"), "detail")
    _check_version(detail, "event-version", "detail.event-version", "1")
    kind = _DETAIL_TYPES.get(event) or _deletion(detail)
    bucket = bucket_name(as_object(detail.get("bucket"), "detail.bucket"), "name", "detail.bucket.name")
    entry = as_object(detail.get("object"), "detail.object")
    at = _time(document, "time", "time", received)
    yield _event(kind, bucket, entry, "detail.object", ("etag", "version-id"), at)


def _deletion(detail: dict[str, Any]) -> Kind:
    kind = _DELETIONS.get(text(detail, "deletion-type", "detail.deletion-type"))
    if kind is None:
        raise MessageError(f"detail.deletion-type is not known; known are {', '.join(_DELETIONS)}")
    return kind


def _event(kind: Kind, bucket: str, entry: dict[str, Any], name: str, fields: tuple[str, str], at: str) -> ObjectEvent:
    etag, version = fields
    one = ObjectEvent(
        kind,
        bucket,
        text(entry, "key", f"{name}.key"),
        _version(entry, version, f"{name}.{version}"),
        "" if kind == "restored" else sequencer_of(entry, "sequencer", f"{name}.sequencer"),
        at,
    )
    if kind in ("hidden", "removed"):
        return one
    return replace(one, etag=_etag(entry, etag, f"{name}.{etag}"), size=whole_number(entry, "size", f"{name}.size"))


def _check_version(holder: dict[str, Any], field: str, name: str, major: str) -> None:
    """Minor versions only add fields; another major one means other things by the same names."""
    if field in holder and plain_text(holder, field, name).partition(".")[0] != major:
        raise MessageError(f"{name} is not {major}.x, the only major version known")


def _time(holder: dict[str, Any], field: str, name: str, otherwise: str) -> str:
    if field not in holder:
        return otherwise
    try:
        return seconds_in_utc(iso_date(plain_text(holder, field, name)))
    except ValueError as error:
        raise MessageError(f"{name} is not a time") from error


def _ignore(event: str) -> None:
    log.info("an event of S3's is ignored, for it changes no object's bytes: %s", visible(event)[:_SHOWN])


def _warn_of_loss(bucket: str, key: str) -> None:
    log.warning("S3 lost an object of reduced redundancy: %s in bucket %s", visible(key)[:_SHOWN], bucket)


def _unquote(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise MessageError(f"{name} is not a string with text")
    try:
        return unquote_plus(value, errors="strict")
    except UnicodeDecodeError as error:
        raise MessageError(f"{name} is not valid unicode") from error


def _version(entry: dict[str, Any], field: str, name: str) -> str | None:
    """None where the bucket has no versions: the field is missing there, null or empty."""
    return None if entry.get(field) in (None, "") else plain_text(entry, field, name)


def _etag(entry: dict[str, Any], field: str, name: str) -> str:
    """Without quotes; an empty one would be no object's, and the object taken for overwritten."""
    etag = plain_text(entry, field, name).strip('"')
    if not etag:
        raise MessageError(f"{name} is not a string with text")
    return etag
