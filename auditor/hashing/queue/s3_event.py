"""Read one event of S3's, in either of the two forms that S3 writes. Fields that matter to us are read strictly.

Sources: S3 User Guide, notification-content-structure, notification-how-to-event-types-and-destinations, ev-events.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import unquote_plus

from auditor.hashing.queue.message import bounded, bucket_name, sequencer_text
from auditor.model.dates import iso_date, seconds_in_utc
from auditor.model.json_text import JsonError, as_object, items, member, plain_text, size, text
from auditor.text import visible

log = logging.getLogger(__name__)

Kind = Literal["created", "restored", "hidden", "removed"]
"""created, restored: the bytes can be hashed. hidden: a delete marker hides the key. removed: for good, one version, or
the whole key if the bucket has no versions."""

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
    """One event of one object."""

    kind: Kind
    bucket: str
    key: str
    version_id: str | None
    """None if the bucket has no versions."""
    sequencer: str
    """Orders the events of a key; "" if the event has none."""
    at: str
    """ISO 8601, UTC."""
    etag: str = ""
    """"" if the event leaves nothing to hash."""
    size: int = 0
    """Bytes; 0 if the event leaves nothing to hash."""


def from_records(document: dict[str, Any], received: str) -> list[ObjectEvent]:
    """Return the events of S3's own form. received: the time for events that have none. Raise JsonError."""

    def read(records: list[Any]) -> tuple[ObjectEvent | None, ...]:
        return items(bounded(records), lambda record: _of_record(record, received))

    return [event for event in member(document, "Records", read) if event is not None]


def _of_record(record: Any, received: str) -> ObjectEvent | None:
    if as_object(record).get("eventSource") != "aws:s3":
        raise JsonError("is not aws:s3", "eventSource")
    _check_version(record, "eventVersion", "2")
    event = member(record, "eventName", text).removeprefix("s3:")
    kind = _KINDS.get(event) or ("created" if event.startswith("ObjectCreated:") else None)
    if kind is None and event != _LOST:
        _ignore(event)
        return None
    at = member(record, "eventTime", _time, received)
    if kind is not None:
        return _event(kind, record, "s3", ("eTag", "versionId"), _unquoted, at)
    bucket, key = member(record, "s3.bucket.name", bucket_name), member(record, "s3.object.key", _unquoted)
    log.warning("S3 lost an object of reduced redundancy: %s in bucket %s", visible(key)[:_SHOWN], bucket)
    return None


def from_event_bridge(document: dict[str, Any], received: str) -> list[ObjectEvent]:
    """Return the event of EventBridge's form, if it matters to us, as from_records() does."""
    if document.get("source") != "aws.s3":
        raise JsonError("is not aws.s3", "source")
    event = member(document, "detail-type", text)
    if event != "Object Deleted" and event not in _DETAIL_TYPES:
        _ignore(event)
        return []
    _check_version(document, "detail.event-version", "1")
    kind = _DETAIL_TYPES[event] if event in _DETAIL_TYPES else member(document, "detail.deletion-type", _deletion)
    at = member(document, "time", _time, received)
    return [_event(kind, document, "detail", ("etag", "version-id"), text, at)]


def _event(
    kind: Kind, document: Any, place: str, names: tuple[str, str], read_key: Callable[[Any], str], at: str
) -> ObjectEvent:
    """Return the event. place: path of the bucket and the object in the document. names: fields of the object's ETag
    and version.
    """
    etag, version = (f"{place}.object.{name}" for name in names)
    hashable = kind in ("created", "restored")
    return ObjectEvent(
        kind=kind,
        bucket=member(document, f"{place}.bucket.name", bucket_name),
        key=member(document, f"{place}.object.key", read_key),
        version_id=member(document, version, _version),
        sequencer="" if kind == "restored" else member(document, f"{place}.object.sequencer", sequencer_text, ""),
        at=at,
        etag=member(document, etag, _etag) if hashable else "",
        size=member(document, f"{place}.object.size", size) if hashable else 0,
    )


def _check_version(document: Any, path: str, major: str) -> None:
    """Refuse another major version of the form. A minor version only adds fields; a major one may change the meaning of
    names.
    """
    if member(document, path, plain_text, major).partition(".")[0] != major:
        raise JsonError(f"is not {major}.x, the only major version known", path)


def _deletion(value: Any) -> Kind:
    kind = _DELETIONS.get(text(value))
    if kind is None:
        raise JsonError(f"is not known; known are {', '.join(_DELETIONS)}")
    return kind


def _time(value: Any) -> str:
    written = plain_text(value)
    try:
        return seconds_in_utc(iso_date(written))
    except ValueError as error:
        raise JsonError("is not a time") from error


def _unquoted(value: Any) -> str:
    """Decode a key of S3's own form. It is form-urlencoded: a space is "+" (notification-content-structure)."""
    if not isinstance(value, str):
        raise JsonError("is not a string with text")
    try:
        return text(unquote_plus(value, errors="strict"))
    except UnicodeDecodeError as error:
        raise JsonError("is not valid unicode") from error


def _version(value: Any) -> str | None:
    """Return the version ID. Return None if the bucket has no versions: the field is then missing, null or empty."""
    return None if value in (None, "") else plain_text(value)


def _etag(value: Any) -> str:
    """Return the ETag without quotes. Refuse an empty one: no object has it, so the object would seem overwritten."""
    etag = plain_text(value).strip('"')
    if not etag:
        raise JsonError("is not a string with text")
    return etag


def _ignore(event: str) -> None:
    log.info("an event of S3's is ignored, for it changes no object's bytes: %s", visible(event)[:_SHOWN])
