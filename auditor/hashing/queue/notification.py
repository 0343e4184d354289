"""Read a queue message: one of the auditor's own, or an event notification of S3, sent directly, by SNS or by
EventBridge. S3's events are recorded in the ledger before the hashing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from auditor.errors import MessageError
from auditor.hashing.queue.message import HashMessage, HashTask, decode_document, pack, parse, reasons
from auditor.hashing.queue.s3_event import ObjectEvent, from_event_bridge, from_records
from auditor.ledger.base import Event, KeyHistory, Notice
from auditor.model.dates import now_in_utc, seconds_in_utc
from auditor.model.digest import ALGORITHMS
from auditor.s3.sequencer import sort_key

T = TypeVar("T", HashTask, ObjectEvent)
EVENT_RUN: Final = "event"
_DEFAULT: Final = ALGORITHMS[:1]


class Noticed(Struct, frozen=True):
    """An event of S3 that the ledger records as the newest state of its key (KeyHistory.arrived).

    Such an event has a sequencer. Of two events of one key, the one with the larger sequencer is newer.
    """

    bucket: str
    notice: Notice


class Removed(Struct, frozen=True):
    """A deletion that the ledger writes only into the key's history, because the event removed only one version, or has
    no sequencer.
    """

    bucket: str
    event: Event


class Notification(Struct, frozen=True, kw_only=True):
    """The content of a queue message. For one of the auditor's own messages, only `messages` is set."""

    messages: tuple[HashMessage, ...] = ()
    """Objects to hash, in one message for each bucket, or in more if the limits require that."""
    notices: tuple[Noticed, ...] = ()
    """Events that tell the state of their keys, sorted by key and then by sequencer."""
    removals: tuple[Removed, ...] = ()
    superseded: int = 0
    """Number of objects that are left out of `messages`, because a newer event of the same notification
    replaces them."""
    test: bool = False
    """True for `s3:TestEvent`, which S3 sends when a person sets up notifications. Such a message needs no work."""


def decode_notification(
    body: str, algorithms: Sequence[str] = _DEFAULT, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> Notification:
    """Read the body of a queue message. Raises MessageError, whose text never quotes the body.

    algorithms: the algorithms by which to hash the objects of S3's events. now: returns the present time, for events
    without a time.
    """
    with reasons():
        document = parse(body)
        if "v" in document:
            return Notification(messages=(decode_document(document),))
        events = _events(document, now, acls=False)
    return Notification(test=True) if events is None else _notification(events, tuple(algorithms))


def decode_events(body: str, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> list[ObjectEvent]:
    """Read the events of S3 in the body of a queue message, those on ACLs too; none of s3:TestEvent. Raises
    MessageError, whose text never quotes the body.
    """
    with reasons():
        return _events(parse(body), now, acls=True) or []


def _events(document: dict[str, Any], now: Callable[[], datetime], *, acls: bool) -> list[ObjectEvent] | None:
    """Read S3's events in a document, which may be in an envelope of SNS; None for s3:TestEvent."""
    if "Message" in document and "Type" in document:
        document = _unwrap(document)
    if document.get("Event") == "s3:TestEvent":
        return None
    if "detail-type" in document:
        return from_event_bridge(document, lambda: seconds_in_utc(now()), acls=acls)
    if isinstance(records := document.get("Records"), list):
        return from_records(records, lambda: seconds_in_utc(now()), acls=acls)
    raise MessageError("the body is neither a message of the auditor nor an S3 notification")


def newest(tasks: Iterable[HashTask]) -> list[HashTask]:
    """Return each task once, sorted by key and sequencer. Leave out each task that a newer task replaces.

    If tasks have no version ID, only the newest task of a key counts, because the object was overwritten. A task with a
    version ID, or without a sequencer, is never replaced. The order of `tasks` does not matter.
    """
    latest: dict[tuple[str | None, ...], HashTask] = {}
    for task in _in_order(tasks):
        in_place = task.version_id in (None, "null") and task.sequencer
        latest[(task.key,) if in_place else (task.key, task.version_id, task.etag)] = task
    return _in_order(latest.values())


def _in_order(found: Iterable[T]) -> list[T]:
    """Return the events or tasks sorted by key and sequencer. Most lists have one entry, because S3 sends nearly every
    event alone.
    """
    entries = list(found)
    return sorted(entries, key=_order) if len(entries) > 1 else entries


def _order(task: HashTask | ObjectEvent) -> tuple[str, str, str, str, int]:
    return task.key, sort_key(task.sequencer), task.version_id or "", task.etag, task.size


def _notification(events: Sequence[ObjectEvent], algorithms: tuple[str, ...]) -> Notification:
    by_bucket: dict[str, list[HashTask]] = {}
    for one in events:
        if one.kind in ("created", "restored"):
            task = HashTask(one.key, one.version_id, one.etag, one.size, sequencer=one.sequencer)
            by_bucket.setdefault(one.bucket, []).append(task)
    current = {bucket: newest(tasks) for bucket, tasks in by_bucket.items()}
    in_order = _in_order(events)
    of_keys = [one for one in in_order if one.sequencer and not _removes_one_version(one)]
    others = [one for one in in_order if one.kind in ("hidden", "removed") and one not in of_keys]
    return Notification(
        messages=tuple(
            message for bucket, tasks in current.items() for message in pack(EVENT_RUN, bucket, algorithms, tasks)
        ),
        notices=tuple(Noticed(one.bucket, _notice(one, one.at, deleted=one.kind != "created")) for one in of_keys),
        removals=tuple(Removed(one.bucket, _removal(one)) for one in others),
        superseded=sum(map(len, by_bucket.values())) - sum(map(len, current.values())),
    )


def _removes_one_version(one: ObjectEvent) -> bool:
    """True if the event removed a single version or delete marker, so that the key may still have an object."""
    return one.kind == "removed" and one.version_id is not None


def _notice(one: ObjectEvent | HashTask, at: str, *, deleted: bool) -> Notice:
    etag, size = (None, None) if deleted else (one.etag, one.size)
    name, order = one.version_id, one.sequencer
    return Notice(key=one.key, sequencer=order, deleted=deleted, at=at, version_id=name, etag=etag, size=size)


def _removal(one: ObjectEvent) -> Event:
    detail = {"sequencer": one.sequencer} if one.sequencer else {}
    return Event(key=one.key, at=one.at, what="deleted", version_id=one.version_id, detail=detail)


def _unwrap(document: dict[str, Any]) -> dict[str, Any]:
    """Return the S3 notification from an envelope of SNS. Raises MessageError if the envelope has none."""
    if document["Type"] != "Notification" or not isinstance(document["Message"], str):
        raise MessageError("the SNS envelope holds no notification")
    return parse(document["Message"])


async def drop_superseded(ledger: KeyHistory, notification: Notification) -> Notification:
    """Record the events of a notification in the ledger, and return the notification without objects that newer events
    replaced.

    Objects that a worker has sent again are checked too: a newer event may have come since. Raises LedgerError.
    """
    for removed in notification.removals:
        await ledger.note(removed.bucket, [removed.event])
    notices = notification.notices or [
        Noticed(message.bucket, _notice(task, now_in_utc(), deleted=False))
        for message in notification.messages
        for task in message.tasks
        if task.sequencer
    ]
    older: set[tuple[str, str, str]] = set()
    for one in notices:
        if not await ledger.arrived(one.bucket, one.notice):
            older.add((one.bucket, one.notice.key, one.notice.sequencer))
    if not older:
        return notification
    messages, superseded = [], notification.superseded
    for message in notification.messages:
        tasks = tuple(task for task in message.tasks if not _superseded(message.bucket, task, older))
        superseded += len(message.tasks) - len(tasks)
        if tasks:
            messages.append(replace(message, tasks=tasks))
    return replace(notification, messages=tuple(messages), superseded=superseded)


def _superseded(bucket: str, task: HashTask, older: set[tuple[str, str, str]]) -> bool:
    """True if a newer event has replaced this object.

    older: (bucket, key, sequencer) of each event that is not the newest of its key in the ledger.
    """
    return task.version_id in (None, "null") and (bucket, task.key, task.sequencer) in older
