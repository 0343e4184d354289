"""Read an event of S3 in its two forms, S3's own and EventBridge's. The fields that the auditor uses are read strictly.

Sources: S3 User Guide, notification-content-structure, notification-how-to-event-types-and-destinations, ev-events.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Literal

from msgspec import Struct

from auditor.hashing.queue.message import MAX_OBJECTS, BucketName, Sequencer
from auditor.model.json_codec import (
    JsonError,
    PlainText,
    Size,
    etag_text,
    form_text,
    members,
    text,
    text_or_none,
    time_text,
    typed,
)
from auditor.text import visible

log = logging.getLogger(__name__)

Kind = Literal["created", "restored", "hidden", "removed", "acl"]
"""The kind of an event. "created" and "restored": the object's bytes can be hashed. "hidden": a delete marker hides the
key. "removed": one version was deleted for good or, in a bucket without versions, the object. "acl": the object has
another ACL, and the same bytes."""

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
_DETAIL_TYPES: Final[dict[str, Kind]] = {
    "Object Created": "created",
    "Object Restore Completed": "restored",
}
_ACL_KINDS: Final[dict[str, Kind]] = {"ObjectAcl:Put": "acl", "Object ACL Updated": "acl"}
_DELETIONS: Final[dict[str, Kind]] = {"Delete Marker Created": "hidden", "Permanently Deleted": "removed"}
_LOST: Final = "ReducedRedundancyLostObject"
_SHOWN: Final = 100

_Fields = Mapping[str, tuple[Any, ...]]
"""JSON members to read, in the form that members() takes."""
_RECORD: Final[_Fields] = {"version": ("eventVersion", partial(typed, PlainText), "2"), "event": ("eventName", text)}
_TYPE: Final[_Fields] = {"event": ("detail-type", text)}
_DETAIL: Final[_Fields] = {"version": ("detail.event-version", partial(typed, PlainText), "1")}
_DELETED: Final[_Fields] = {**_DETAIL, "deletion": ("detail.deletion-type", text)}


def _fields(place: str, at: str, etag: str, version: str, key: Callable[[Any], str]) -> dict[Kind | None, _Fields]:
    """Return the JSON members to read for each kind of event. The kind None is for an object that S3 itself has lost.

    place: path of the JSON object with bucket and object. at: path of the event's time. etag, version: names of the
    object's members with the ETag and the version ID. key: reads the object key.
    """
    entry = f"{place}.object"
    lost = {
        "at": (at, time_text, ""),
        "bucket": (f"{place}.bucket.name", partial(typed, BucketName)),
        "key": (f"{entry}.key", key),
    }
    named = {**lost, "version_id": (f"{entry}.{version}", text_or_none)}
    gone = {**named, "sequencer": (f"{entry}.sequencer", partial(typed, Sequencer), "")}
    content = {"etag": (f"{entry}.{etag}", etag_text), "size": (f"{entry}.size", partial(typed, Size))}
    return {
        "created": {**gone, **content},
        "restored": {**named, **content},
        "hidden": gone,
        "removed": gone,
        "acl": named,
        None: lost,
    }


# S3's own form has its keys form-urlencoded (notification-content-structure).
_IN_RECORDS: Final = _fields("s3", "eventTime", "eTag", "versionId", form_text)
_IN_DETAILS: Final = _fields("detail", "time", "etag", "version-id", text)


class ObjectEvent(Struct, frozen=True):
    """One event of S3 about one object."""

    kind: Kind
    bucket: str
    key: str
    version_id: str | None
    """ID of the object version; None if the event names none, as in a bucket without versions."""
    at: str
    """Time of the event, ISO 8601 in UTC."""
    sequencer: str = ""
    """A text that orders the events of one key; "" if the event has none."""
    etag: str = ""
    """ETag of the object; empty if the event leaves nothing to hash."""
    size: int = 0
    """Size of the object in bytes; 0 if the event leaves nothing to hash."""


def from_records(records: list[Any], received: Callable[[], str], *, acls: bool = False) -> list[ObjectEvent]:
    """Read the events of a notification in S3's own form, without kinds of events that do not change an object's bytes.

    Raises JsonError. received: returns the time of receipt, for an event without a time. acls: True to read events on
    ACLs, too.
    """
    if len(records) > MAX_OBJECTS:
        raise JsonError(f"has {len(records)} entries, more than {MAX_OBJECTS}", "Records")
    events: list[ObjectEvent] = []
    for index, record in enumerate(records):
        try:
            event = _of_record(record, received, _ACL_KINDS if acls else {})
        except JsonError as error:
            raise error.below(f"Records[{index}]") from None
        if event is not None:
            events.append(event)
    return events


def _of_record(record: Any, received: Callable[[], str], more: Mapping[str, Kind]) -> ObjectEvent | None:
    """Read one record. more: further events to read, besides those that change an object's bytes."""
    if not isinstance(record, dict):
        raise JsonError("is not a JSON object")
    if record.get("eventSource") != "aws:s3":
        raise JsonError("is not aws:s3", "eventSource")
    head = members(record, _RECORD)
    _check_version(head["version"], "eventVersion", "2")
    event = head["event"].removeprefix("s3:")
    kind = _KINDS.get(event) or more.get(event) or ("created" if event.startswith("ObjectCreated:") else None)
    if kind is None and event != _LOST:
        _ignore(event)
        return None
    found = members(record, _IN_RECORDS[kind])
    if kind is not None:
        return ObjectEvent(kind, **found | {"at": found["at"] or received()})
    key = visible(found["key"])[:_SHOWN]
    log.warning("S3 lost an object stored with reduced redundancy: %s in bucket %s", key, found["bucket"])
    return None


def from_event_bridge(
    document: dict[str, Any], received: Callable[[], str], *, acls: bool = False
) -> list[ObjectEvent]:
    """Read the event in EventBridge's form. Return [] if an event of its kind does not change an object's bytes.

    Raises JsonError. received: returns the time of receipt, for an event without a time. acls: True to read an event on
    an ACL, too.
    """
    if document.get("source") != "aws.s3":
        raise JsonError("is not aws.s3", "source")
    event = members(document, _TYPE)["event"]
    kinds = {**_DETAIL_TYPES, **(_ACL_KINDS if acls else {})}
    if event != "Object Deleted" and event not in kinds:
        _ignore(event)
        return []
    head = members(document, _DELETED if event == "Object Deleted" else _DETAIL)
    _check_version(head["version"], "detail.event-version", "1")
    kind = kinds.get(event) or _DELETIONS.get(head["deletion"])
    if kind is None:
        raise JsonError(f"is not known; known ones are {', '.join(_DELETIONS)}", "detail.deletion-type")
    found = members(document, _IN_DETAILS[kind])
    return [ObjectEvent(kind, **found | {"at": found["at"] or received()})]


def _check_version(version: str, path: str, major: str) -> None:
    """Raise JsonError if the form has another major version than `major`. A minor version only adds fields.

    path: path of the version in the JSON, for the error.
    """
    if version.partition(".")[0] != major:
        raise JsonError(f"is not {major}.x, the only major version known", path)


def _ignore(event: str) -> None:
    log.info("ignoring an S3 event that changes no object's bytes: %s", visible(event)[:_SHOWN])
