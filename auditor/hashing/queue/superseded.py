"""What notifications say of keys goes to the ledger first: an event that is older than one before it hashes nothing."""

from __future__ import annotations

from dataclasses import replace

from auditor.hashing.queue.message import HashMessage, HashTask
from auditor.hashing.queue.notification import Noticed, Notification
from auditor.ledger.base import KeyHistory, Notice
from auditor.model.dates import now_in_utc


async def drop_superseded(ledger: KeyHistory, notification: Notification) -> Notification:
    """Tell the ledger of all that it says; returns it without the objects that a newer event has superseded.

    An object that was sent again is asked for once more: its newer one may have come meanwhile. Raises LedgerError.
    """
    for removed in notification.removals:
        await ledger.note(removed.bucket, [removed.event])
    notices = notification.notices or [Noticed(m.bucket, _notice(t)) for m in notification.messages for t in _told(m)]
    older: set[tuple[str, str, str]] = set()
    for noticed in notices:
        if not await ledger.arrived(noticed.bucket, noticed.notice):
            older.add((noticed.bucket, noticed.notice.key, noticed.notice.sequencer))
    if not older:
        return notification
    left, superseded = [], notification.superseded
    for message in notification.messages:
        tasks = tuple(task for task in message.tasks if not _superseded(message.bucket, task, older))
        superseded += len(message.tasks) - len(tasks)
        if tasks:
            left.append(replace(message, tasks=tasks))
    return replace(notification, messages=tuple(left), superseded=superseded)


def _told(message: HashMessage) -> list[HashTask]:
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
    """A version stays what it is; without versions the newer object lies in the older one's place."""
    return task.version_id in (None, "null") and (bucket, task.key, task.sequencer) in older
