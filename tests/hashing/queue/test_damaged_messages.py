"""Damaged bodies of queue messages, by chance: each is refused by a MessageError, or read as its text says.

tests/runs/test_damaged_files.py says how to try more of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, Final

import pytest

from auditor.errors import MessageError
from auditor.hashing.queue.message import HashMessage, HashTask, decode, encode, pack
from auditor.hashing.queue.notification import decode_events, decode_notification
from auditor.hashing.queue.s3_event import ObjectEvent
from tests.hashing.queue.test_notification import event_bridge, plain, record, through_sns
from tests.support.damage import Damager, damaged_inputs, differs, plainly

TASKS: Final = (
    HashTask("a", None, "e" * 32, 5 * 1024**2),
    HashTask('"\u2028\U0001f512', "null", "0a-5", 0, attempts=2, hops=3, sequencer="0055AED6DCD90281E5"),
)
OWN: Final = encode(*pack("20260102T030405Z-0a1b2c", "audited", ("sha256", "crc64nvme"), TASKS))
BODIES: Final[Mapping[str, str]] = {
    "own": OWN,
    "records": plain(record("a%2Bb"), record("b", event="ObjectAcl:Put"), record("c", event="ObjectRemoved:Delete")),
    "sns": through_sns(plain(record("a"))),
    "event bridge": event_bridge("\U0001f512"),
    "event bridge, deleted": event_bridge("k", "Object Deleted", deletion="Permanently Deleted"),
}


def task_members(task: HashTask) -> dict[str, Any]:
    names = ("key", "version_id", "etag", "size", "attempts", "hops", "sequencer")
    return {name: getattr(task, name) for name in names}


def check_own(message: HashMessage, given: Mapping[str, Any]) -> None:
    """Assert that a message is the one that its JSON says."""
    tasks = [task_members(one) for one in message.tasks]
    found = {"run": message.run, "bucket": message.bucket, "objects": tasks}
    assert differs(found, dict(given)) is None
    assert list(message.algorithms) == list(dict.fromkeys(given["algorithms"]))


def check_event(event: ObjectEvent) -> None:
    """Assert that the event has values within their limits."""
    assert 0 < len(event.key.encode()) <= 1024
    assert 0 <= event.size <= 2**53
    assert event.etag.isascii()


@pytest.mark.parametrize("name", BODIES)
def test_damaged_message_is_refused_or_read_as_it_says(name: str) -> None:
    whole, damager, refused = BODIES[name].encode(), Damager(zlib.crc32(name.encode())), 0
    for number in range(damaged_inputs(60)):
        kind, data = damager.damaged(whole)
        body = data.decode(errors="surrogateescape" if number % 2 else "replace")
        try:
            notification = decode_notification(body)
            given = plainly(body)
            assert given is not None, "a body that is no JSON object was read"
            for message in notification.messages:
                if "v" in given:
                    check_own(message, given)
                    assert decode(body) == message
            for event in decode_events(body) if "v" not in given else ():
                check_event(event)
        except MessageError:
            refused += 1
        except Exception as error:
            error.add_note(f"input {number} of {name}, {kind}: {body[:3000]!r}")
            raise
    assert refused > 0
