"""Poison messages: each is refused with a reason that quotes nothing of it, and its good neighbours are hashed."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from auditor.errors import MessageError
from auditor.hashing.queue.notification import decode_notification
from auditor.ledger.base import Ledger
from tests.support.fakes.hashing import MemoryQueue, Store, digests_in, message_of, processor_of, sha256_of

EVIL = "EVIL\u202e\n\x1b[31m"
"""Marks the text of a poison message, so that it is known again where it must not come."""

WRONG: list[Any] = [
    *(None, True, False, 0.5, -1, 10**400, [], {}, [EVIL], {EVIL: EVIL}, [[]]),
    *("", EVIL, EVIL * 500, "\x00", "\ud800", "\udfff\ud800", "\uffff" * 1025),
]
"""Values of which every field of ours refuses most; the others are in TAKEN."""

OURS: dict[str, Any] = {
    "v": 1,
    "run": "run",
    "bucket": "bucket",
    "algorithms": ["sha256"],
    "objects": [
        {"key": "k", "version_id": "v1", "etag": "e", "size": 1, "attempts": 0, "hops": 0, "sequencer": "00AF"},
    ],
}
RECORDS: dict[str, Any] = {
    "Records": [
        {
            "eventVersion": "2.1",
            "eventSource": "aws:s3",
            "eventTime": "2026-01-02T03:04:05.000Z",
            "eventName": "ObjectCreated:Put",
            "s3": {
                "bucket": {"name": "bucket"},
                "object": {"key": "k", "size": 1, "eTag": "e", "versionId": "v1", "sequencer": "00AF"},
            },
        }
    ]
}
BRIDGED: dict[str, Any] = {
    "source": "aws.s3",
    "detail-type": "Object Deleted",
    "time": "2026-01-02T03:04:05Z",
    "detail": {
        "event-version": "1.1",
        "bucket": {"name": "bucket"},
        "object": {"key": "k", "version-id": "v1", "sequencer": "00AF"},
        "deletion-type": "Permanently Deleted",
    },
}
WRAPPED: dict[str, Any] = {"Type": "Notification", "Message": json.dumps(RECORDS)}

TAKEN: dict[str, list[Any]] = {
    "objects.0.key": [EVIL, "\x00"],  # S3 takes such keys
    "objects.0.version_id": [None],
    "Records": [[]],
    "Records.0.eventName": [EVIL, "\x00"],  # an event that is not known is ignored
    "Records.0.s3.object.key": [EVIL, "\x00"],
    "Records.0.s3.object.versionId": [None, ""],
    "detail-type": [EVIL, "\x00"],
    "detail.object.key": [EVIL, "\x00"],
    "detail.object.version-id": [None, ""],
}
"""By field, which of WRONG are right there."""


def paths(value: Any, *above: str) -> Iterator[tuple[str, ...]]:
    """The way to everything inside of a document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in inside:
        yield (*above, str(name))
        yield from paths(inner, *above, str(name))


def with_value(document: dict[str, Any], path: tuple[str, ...], value: Any) -> str:
    changed = copy.deepcopy(document)
    holder: Any = changed
    for name in path[:-1]:
        holder = holder[int(name)] if isinstance(holder, list) else holder[name]
    holder[int(path[-1]) if isinstance(holder, list) else path[-1]] = value
    return json.dumps(changed)


def reason(body: str) -> str:
    with pytest.raises(MessageError) as caught:
        decode_notification(body)
    return str(caught.value)


def check_reason(found: str) -> None:
    assert "EVIL" not in found
    assert found.isascii()
    assert found.isprintable()
    assert 10 < len(found) < 200


DOCUMENTS = {"ours": OURS, "records": RECORDS, "bridged": BRIDGED, "wrapped": WRAPPED}


def test_a_value_of_the_wrong_kind_is_refused_in_every_field() -> None:
    failures = []
    for name, document in DOCUMENTS.items():
        decode_notification(json.dumps(document))  # it is the one value that makes the difference
        for path in paths(document):
            taken = [json.dumps(value) for value in TAKEN.get(".".join(path), ())]
            for value in WRONG:
                try:
                    decode_notification(with_value(document, path, value))
                    read = True
                except MessageError as error:
                    check_reason(str(error))
                    read = False
                if read is not (json.dumps(value) in taken):
                    failures.append(f"{name}: {'.'.join(path)} is {value!r:.80}")
    assert not failures, failures


NESTED = "[" * 200_000 + "]" * 200_000
GOOD = json.dumps(OURS)
NOT_JSON = {
    "nothing": "",
    "junk of a megabyte": EVIL * 100_000,
    "noughts": "\x00" * 1000,
    "a message and a nought": GOOD + "\x00",
    "a nought in a string": GOOD.replace('"run"', '"r\x00n"', 1),
    "a byte order mark": "\ufeff" + GOOD,
    "lone surrogates": "\ud800\udfff",
    "two messages": GOOD + GOOD,
    "half a message": GOOD[: len(GOOD) // 2],
    "nested lists": NESTED,
    "nested objects": '{"a":' * 200_000 + "1" + "}" * 200_000,
    "nested where it is ignored": GOOD.replace('"v"', f'"extra":{NESTED},"v"'),
    "nested in SNS's envelope": json.dumps({"Type": "Notification", "Message": NESTED}),
    "digits": "9" * 1_000_000,
    "digits as a size": GOOD.replace('"size": 1', '"size": ' + "9" * 100_000),
    "not a number": GOOD.replace('"size": 1', '"size": NaN'),
    "infinity": GOOD.replace('"size": 1', '"size": -Infinity'),
    "a number that is ignored": GOOD.replace('"v"', '"extra":Infinity,"v"'),
    "Python": repr(OURS),
    "XML": f'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "{EVIL}">]><a>&b;</a>',
}
TWICE = {
    "the bucket": GOOD.replace('"bucket": "bucket"', '"bucket": "bucket", "bucket": "other"'),
    "the bucket, escaped": GOOD.replace('"bucket": "bucket"', '"bucket": "bucket", "\\u0062ucket": "other"'),
    "an object's key": GOOD.replace('"key": "k"', '"key": "k", "key": "other"'),
    "a field that is ignored": GOOD.replace('"v"', f'"{"EVIL"}": 1, "{"EVIL"}": 2, "v"'),
    "a record's key": json.dumps(RECORDS).replace('"key": "k"', '"key": "k", "key": "other"'),
    "the records": '{"Records": [], "Records": []}',
    "in SNS's envelope": json.dumps({"Type": "Notification", "Message": '{"Records": [], "Records": []}'}),
}
LARGE = {
    "1e400": GOOD.replace('"size": 1', '"size": 1e400'),
    "a whole number written as a fraction": GOOD.replace('"size": 1', '"size": 1.0'),
    "a version written as a fraction": GOOD.replace('"v": 1', '"v": 1.0'),
    "a thousand digits": GOOD.replace('"size": 1', '"size": ' + "9" * 1000),
    "a key of a megabyte": with_value(OURS, ("objects", "0", "key"), EVIL * 100_000),
    "many objects": with_value(OURS, ("objects",), [OURS["objects"][0]] * 101),
    "many records": with_value(RECORDS, ("Records",), RECORDS["Records"] * 101),
    "many hops": GOOD.replace('"hops": 0', '"hops": 10001'),
}


def test_what_no_message_may_be_is_refused_by_its_name() -> None:
    for name, body in NOT_JSON.items():
        assert reason(body) in ("the body is not JSON", "the body is not a JSON object"), name
    for name, body in TWICE.items():
        assert reason(body) == "the body names a field twice", name
    for body in LARGE.values():
        check_reason(reason(body))


def test_what_is_merely_unknown_is_ignored() -> None:
    extra = {"extra": {EVIL: [EVIL, None, 1e300]}}
    objects = [OURS["objects"][0] | extra]
    assert decode_notification(json.dumps(OURS | extra | {"objects": objects})) == decode_notification(GOOD)
    assert decode_notification(json.dumps({"Records": []} | extra)).messages == ()


async def test_malformed_messages_among_good_ones_harm_none(
    queue: MemoryQueue, dead: MemoryQueue, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    poison = [*NOT_JSON.values(), *TWICE.values(), *LARGE.values()]
    store = Store({f"key-{number}": f"data {number}".encode() * 50 for number in range(len(poison))})
    processor = processor_of(queue, ledger, store)
    good = [message_of(store, key) for key in store.objects]
    received = [queue.put(body) for pair in zip(good, poison, strict=True) for body in pair]
    done = await asyncio.gather(*map(processor.process, received))
    assert await digests_in(ledger, store) == sha256_of(store.objects)
    assert [one.retry_after for one in done] == [None] * len(done)
    assert {one.counts.hashed for one in done[::2]} == {1}
    assert {(one.counts.failed, one.counts.dead_lettered) for one in done[1::2]} == {(1, 1)}
    assert sorted(letter.body for letter in dead.sent) == sorted(poison)
    for letter in dead.sent:
        check_reason(letter.attributes["reason"])
    assert queue.sent == []
    assert "EVIL" not in caplog.text
