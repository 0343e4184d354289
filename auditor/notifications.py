"""S3's own events as hash messages: plain, through SNS, or from EventBridge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote_plus

from auditor.errors import MessageError
from auditor.messages import (
    ALGORITHMS,
    MAX_OBJECTS,
    HashMessage,
    HashTask,
    as_object,
    bucket_name,
    decode_document,
    pack,
    parse,
    plain_text,
    text,
    whole_number,
)

EVENT_RUN: Final = "event"
_DEFAULT: Final = ALGORITHMS[:1]


@dataclass(frozen=True, slots=True)
class TestEvent:
    """`s3:TestEvent`: S3 sends it when notifications are set up; there is nothing to do."""

    __test__ = False  # pytest would take it for a test by its name


def decode_any(body: str, algorithms: Sequence[str] = _DEFAULT) -> list[HashMessage] | TestEvent:
    """One of our messages or one of S3's; `algorithms` are what S3's events ask for. Raises MessageError."""
    document = parse(body)
    if "v" in document:
        return [decode_document(document)]
    return _decode_event(document, algorithms)


def _decode_event(document: dict[str, Any], algorithms: Sequence[str]) -> list[HashMessage] | TestEvent:
    """S3's notification as messages, one a bucket; none when it tells of no created object."""
    if "Message" in document and "Type" in document:
        document = _unwrap(document)
    if document.get("Event") == "s3:TestEvent":
        return TestEvent()
    if "detail-type" in document:
        found = _from_event_bridge(document)
    elif isinstance(document.get("Records"), list):
        found = _from_records(document["Records"])
    else:
        raise MessageError("the body is neither a message of ours nor an S3 notification")
    by_bucket: dict[str, list[HashTask]] = {}
    for bucket, task in found:
        by_bucket.setdefault(bucket, []).append(task)
    return [
        message for bucket, tasks in by_bucket.items() for message in pack(EVENT_RUN, bucket, tuple(algorithms), tasks)
    ]


def _unwrap(document: dict[str, Any]) -> dict[str, Any]:
    """The notification inside SNS's envelope."""
    if document["Type"] != "Notification" or not isinstance(document["Message"], str):
        raise MessageError("the SNS envelope holds no notification")
    return parse(document["Message"])


def _from_records(records: list[Any]) -> list[tuple[str, HashTask]]:
    """Keys are form-urlencoded there: a space is "+" (S3 User Guide, notification-content-structure)."""
    if len(records) > MAX_OBJECTS:
        raise MessageError(f"Records has {len(records)} entries, more than {MAX_OBJECTS}")
    found: list[tuple[str, HashTask]] = []
    for index, value in enumerate(records):
        name = f"Records[{index}]"
        record = as_object(value, name)
        if record.get("eventSource") != "aws:s3":
            raise MessageError(f"{name}.eventSource is not aws:s3")
        if not text(record, "eventName", f"{name}.eventName").removeprefix("s3:").startswith("ObjectCreated:"):
            continue
        s3 = as_object(record.get("s3"), f"{name}.s3")
        bucket = bucket_name(as_object(s3.get("bucket"), f"{name}.s3.bucket"), "name", f"{name}.s3.bucket.name")
        entry = dict(as_object(s3.get("object"), f"{name}.s3.object"))
        entry["key"] = _unquote(entry.get("key"), f"{name}.s3.object.key")
        found.append((bucket, _created(entry, f"{name}.s3.object", "eTag", "versionId")))
    return found


def _from_event_bridge(document: dict[str, Any]) -> list[tuple[str, HashTask]]:
    """Keys are raw there, `%` and `+` included."""
    if document.get("source") != "aws.s3":
        raise MessageError("source is not aws.s3")
    if document["detail-type"] != "Object Created":
        return []
    detail = as_object(document.get("detail"), "detail")
    bucket = bucket_name(as_object(detail.get("bucket"), "detail.bucket"), "name", "detail.bucket.name")
    entry = as_object(detail.get("object"), "detail.object")
    return [(bucket, _created(entry, "detail.object", "etag", "version-id"))]


def _unquote(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise MessageError(f"{name} is not a string with text")
    try:
        return unquote_plus(value, errors="strict")
    except UnicodeDecodeError as error:
        raise MessageError(f"{name} is not valid unicode") from error


def _created(entry: dict[str, Any], name: str, etag: str, version: str) -> HashTask:
    return HashTask(
        key=text(entry, "key", f"{name}.key"),
        version_id=_version(entry, version, f"{name}.{version}"),
        etag=_etag(entry, etag, f"{name}.{etag}"),
        size=whole_number(entry, "size", f"{name}.size"),
    )


def _version(entry: dict[str, Any], field: str, name: str) -> str | None:
    """None where the bucket has no versions: the field is missing there, null or empty."""
    return None if entry.get(field) in (None, "") else plain_text(entry, field, name)


def _etag(entry: dict[str, Any], field: str, name: str) -> str:
    """Without quotes; an empty one would be no object's, and the object taken for overwritten."""
    etag = plain_text(entry, field, name).strip('"')
    if not etag:
        raise MessageError(f"{name} is not a string with text")
    return etag
