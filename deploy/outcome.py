"""Say what an invocation of a function did, from its answer, its log and the ledger."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from auditor.aio.loop import new_loop
from auditor.errors import LedgerError, MessageError, UsageError
from auditor.hashing.queue.notification import Notification, decode_notification
from auditor.ledger import open_ledger
from auditor.ledger.base import Ledger
from auditor.model.digest import ALGORITHMS
from auditor.text import visible
from deploy.errors import BuildError

_STACK_LINES: Final = 30


def log_lines(log: str) -> Iterator[str]:
    """Yield the lines of a function's log for a terminal. Metrics are left out; a line that is not JSON stays."""
    for line in log.splitlines():
        entry = _entry(line)
        if entry is None:
            yield visible(line)
        elif "_aws" not in entry:
            yield f"{entry.get('level', ''):7} {visible(str(entry.get('message', '')))}"
            yield from (f"        {visible(str(one))}" for one in entry.get("stack", [])[:_STACK_LINES])


def failures(answer: Any, log: str = "") -> list[str]:
    """Return in words what the function did not do; [] if it did everything."""
    found = [
        f"message {visible(str(one['itemIdentifier']))} comes again" for one in answer.get("batchItemFailures", [])
    ]
    for run in answer.get("runs", []):
        if not run["complete"]:
            found.append(f"the run of {visible(run['target']['bucket'])} is not complete: {run['resume']['reason']}")
        if undecided := run.get("coverage", {}).get("undecided", 0) - run.get("accepted", {}).get("undecided", 0):
            found.append(f"{undecided:,} objects are undecided")
        found += [f"the verification has a hole: {visible(hole)}" for hole in run.get("holes", ())]
    found += [visible(str(left)) for left in answer.get("left") or ()]
    bad = [entry for line in log.splitlines() if (entry := _entry(line)) and entry.get("level") in ("WARNING", "ERROR")]
    if bad:
        found.append(f"the log has {len(bad)} warnings or errors: see above")
    return found


def _entry(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def ledger_after(event: Mapping[str, Any], uri: str) -> list[dict[str, Any]]:
    """Return what the ledger has of every object that an event of the hashing function names.

    Each dict has the digests of an object to hash ({} if there are none), or the last event in the history of another
    object. Raises BuildError if the ledger cannot be read.
    """
    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(_ledger_after(_notifications(event), uri))
    except (LedgerError, UsageError) as error:
        raise BuildError(str(error)) from error


def _notifications(event: Mapping[str, Any]) -> Iterator[Notification]:
    for record in event["Records"]:
        try:
            yield decode_notification(record["body"])
        except (MessageError, KeyError, TypeError):  # the function reports it
            continue


async def _ledger_after(notifications: Iterable[Notification], uri: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    async with open_ledger(uri) as ledger:
        for one in notifications:
            for message in one.messages:
                digests = await ledger.known(message.bucket, message.tasks, message.algorithms or ALGORITHMS[:1])
                found += [
                    {"bucket": message.bucket, "key": task.key, "digests": dict(known)}
                    for task, known in zip(message.tasks, digests, strict=True)
                ]
            for noticed in one.notices:
                if noticed.notice.deleted:
                    found.append(await _last_event(ledger, noticed.bucket, noticed.notice.key))
            for removed in one.removals:
                found.append(await _last_event(ledger, removed.bucket, removed.event.key))
    return found


async def _last_event(ledger: Ledger, bucket: str, key: str) -> dict[str, Any]:
    events = [one for one in await ledger.history(bucket, key) if one.what == "deleted"]
    said = {"version_id": events[-1].version_id, "at": events[-1].at} if events else {}
    return {"bucket": bucket, "key": key, "deleted": said}


def without_digest(ledger: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return in words the objects without an entry in the ledger."""
    return [
        f"the ledger has nothing of s3://{one['bucket']}/{visible(one['key'])}"
        for one in ledger
        if not one.get("digests") and not one.get("deleted")
    ]
