"""Record S3's events in the ledger before the hashing, and leave out objects that a newer event has replaced."""

from __future__ import annotations

from msgspec.structs import replace

from auditor.hashing.queue.message import HashMessage, HashTask
from auditor.hashing.queue.notification import Noticed, Notification
from auditor.ledger.base import KeyHistory, Notice
from auditor.model.dates import now_in_utc


async def drop_superseded(ledger: KeyHistory, notification: Notification) -> Notification:
    """Record the events of a notification in the ledger, and return the notification without objects that newer events
    replaced.

    Objects that a worker has sent again are checked too: a newer event may have come since. Raises LedgerError.
    """
    for removed in notification.removals:
        await ledger.note(removed.bucket, [removed.event])
    notices = notification.notices or [
        Noticed(m.bucket, _notice(t)) for m in notification.messages for t in _of_events(m)
    ]
    older: set[tuple[str, str, str]] = set()
    for noticed in notices:
        if not await ledger.arrived(noticed.bucket, noticed.notice):
            older.add((noticed.bucket, noticed.notice.key, noticed.notice.sequencer))
    if not older:
        return notification
    messages, superseded = [], notification.superseded
    for message in notification.messages:
        tasks = tuple(task for task in message.tasks if not _superseded(message.bucket, task, older))
        superseded += len(message.tasks) - len(tasks)
        if tasks:
            messages.append(replace(message, tasks=tasks))
    return replace(notification, messages=tuple(messages), superseded=superseded)


def _of_events(message: HashMessage) -> list[HashTask]:
    return [task for task in message.tasks if task.sequencer]


def _notice(task: HashTask) -> Notice:
    return Notice(
        key=task.key,
        sequencer=task.sequencer,
        deleted=False,
        at=now_in_utc(),
        version_id=task.version_id,
        etag=task.etag,
        size=task.size,
    )


def _superseded(bucket: str, task: HashTask, older: set[tuple[str, str, str]]) -> bool:
    """True if a newer event has replaced this object.

    older: (bucket, key, sequencer) of each event that is not the newest of its key in the ledger.
    """
    return task.version_id in (None, "null") and (bucket, task.key, task.sequencer) in older
