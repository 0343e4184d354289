"""A message of the queue: objects of one bucket to hash; written small, read strictly.

The reader ignores unknown fields, and a message that is written again has lost them. A newer version of ours that adds
a field keeps the version number only where that does no harm; else it raises the number, and older workers refuse it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Final

from auditor.errors import MessageError
from auditor.hashing.limits import LARGE, MIB
from auditor.model.digest import ALGORITHMS
from auditor.model.json_text import (
    JsonError,
    PlainText,
    Size,
    Text,
    parse_object,
    plain_text,
    size,
    text,
    typed,
)
from auditor.model.object import ObjectRef, ObjectVersion
from auditor.s3.sequencer import MAX_LENGTH, is_sequencer

VERSION: Final = 1
MAX_OBJECTS: Final = 100
"""Objects of one message at most: a hundredth of the requests that one message each would take.

More would gain little. A million objects are 10,000 messages: 1,000 sends of ten, 10,000 invocations. SQS bills each
64 KB as a request, and 100 entries have some 15 KB, so that ten messages fit one call's 256 KiB. When a worker is
killed, 100 objects come again, and the ledger knows the recorded ones by then.
"""

MAX_OBJECT_BYTES: Final = 256 * MIB
"""Bytes of one message's objects: a minute at 5 MB/s, of Lambda's 15 minutes."""

MAX_BODY: Final = 200_000
"""Bytes of a message. SQS takes 1 MiB, but queues made before 2025 and other servers take 256 KiB with attributes."""

MOST_HOPS_READ: Final = 10_000
"""Hops that a message may name: far more than any worker lets an object have."""

_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}\Z")


def sequencer_text(value: object) -> str:
    """1 to 64 hexadecimal digits."""
    found = plain_text(value)
    if not is_sequencer(found):
        raise JsonError(f"is not hexadecimal of at most {MAX_LENGTH} digits")
    return found


@dataclass(frozen=True, slots=True)
class HashTask(ObjectVersion):
    """One object version to hash.

    attempts: failed ones so far. hops: workers that left it unfinished for want of time. sequencer: of the S3 event, in
    hexadecimal; "" without an event.
    """

    key: Text
    version_id: PlainText | None = field(metadata={"needed": False})
    etag: PlainText
    size: Size
    attempts: Size = field(default=0, metadata={"needed": True})
    hops: Annotated[int, partial(size, largest=MOST_HOPS_READ)] = 0
    sequencer: Annotated[str, sequencer_text] = ""

    @classmethod
    def of(cls, ref: ObjectRef) -> HashTask:
        """The task of a listed object."""
        return cls(ref.key, ref.version_id, ref.etag, ref.size)


@dataclass(frozen=True, slots=True)
class HashMessage:
    """Objects of one bucket, and the wanted algorithms. run: the audit's ID; "event" for S3's events."""

    run: PlainText
    bucket: Text
    algorithms: tuple[str, ...]
    tasks: tuple[HashTask, ...] = field(metadata={"name": "objects"})


def encode(message: HashMessage) -> str:
    """ASCII JSON without spaces, for SQS refuses some characters and counts bytes."""
    return _envelope(message.run, message.bucket, message.algorithms, ",".join(map(_encode_task, message.tasks)))


def decode(body: str) -> HashMessage:
    """Read one of our messages. Raises MessageError with a reason that never quotes the text."""
    with reasons():
        return decode_document(parse(body))


def decode_document(document: dict[str, Any]) -> HashMessage:
    """Read the parsed JSON of one of our messages. Raises JsonError."""
    if type(document.get("v")) is not int or document["v"] != VERSION:  # True and 1.0 are equal to 1
        raise JsonError(f"is not {VERSION}, the only version known", "field v")
    message = typed(HashMessage, document)
    if not _BUCKET.match(message.bucket):
        raise JsonError("is not a bucket's name", "bucket")
    if not message.algorithms or any(name not in ALGORITHMS for name in message.algorithms):
        raise JsonError(f"is empty or names an unknown one; known are {', '.join(ALGORITHMS)}", "algorithms")
    if not 0 < len(message.tasks) <= MAX_OBJECTS:
        raise JsonError(f"has {len(message.tasks)} entries, not 1 to {MAX_OBJECTS}", "objects")
    return replace(message, algorithms=tuple(dict.fromkeys(message.algorithms)))


@contextmanager
def reasons() -> Iterator[None]:
    """Turn a JsonError into a MessageError."""
    try:
        yield
    except JsonError as error:
        raise MessageError(str(error)) from error


def parse(body: str) -> dict[str, Any]:
    """The JSON object in a message's body. Raises JsonError, also for an object that names a field twice."""
    return parse_object(body, "the body", unique=True)


def bounded(entries: list[Any]) -> list[Any]:
    """The entries of a list. Raises JsonError when they are more than one message may have."""
    if len(entries) > MAX_OBJECTS:
        raise JsonError(f"has {len(entries)} entries, more than {MAX_OBJECTS}")
    return entries


def bucket_name(value: object) -> str:
    name = text(value)
    if not _BUCKET.match(name):
        raise JsonError("is not a bucket's name")
    return name


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def _encode_task(task: HashTask) -> str:
    entry: dict[str, str | int | None] = {
        "key": task.key,
        "version_id": task.version_id,
        "etag": task.etag,
        "size": task.size,
        "attempts": task.attempts,
    }
    if task.hops:
        entry["hops"] = task.hops
    if task.sequencer:
        entry["sequencer"] = task.sequencer
    return _json(entry)


def _envelope(run: str, bucket: str, algorithms: Iterable[str], objects: str) -> str:
    head = _json({"v": VERSION, "run": run, "bucket": bucket, "algorithms": list(algorithms)})
    return f'{head[:-1]},"objects":[{objects}]}}'


class Packer:
    """Collects small objects into messages; a large object gets a message of its own at once."""

    def __init__(self, run: str, bucket: str, algorithms: Iterable[str]) -> None:
        self._run = run
        self._bucket = bucket
        self._algorithms = tuple(algorithms)
        self._empty_body = len(_envelope(run, bucket, self._algorithms, ""))
        self._tasks: list[HashTask] = []
        self._bytes = 0
        self._body = self._empty_body

    def add(self, task: HashTask) -> list[HashMessage]:
        """Add one object; returns the messages that are complete."""
        if task.size >= LARGE:
            return [self._message((task,))]
        length = len(_encode_task(task)) + 1
        full = (
            len(self._tasks) >= MAX_OBJECTS
            or self._bytes + task.size > MAX_OBJECT_BYTES
            or self._body + length > MAX_BODY
        )
        ready = self.flush() if full else []
        self._tasks.append(task)
        self._bytes += task.size
        self._body += length
        return ready

    def flush(self) -> list[HashMessage]:
        """Complete the current message, if it has objects."""
        tasks, self._tasks = tuple(self._tasks), []
        self._bytes, self._body = 0, self._empty_body
        return [self._message(tasks)] if tasks else []

    def _message(self, tasks: tuple[HashTask, ...]) -> HashMessage:
        return HashMessage(self._run, self._bucket, self._algorithms, tasks)


def pack(run: str, bucket: str, algorithms: Iterable[str], tasks: Iterable[HashTask]) -> Iterator[HashMessage]:
    """As few messages as the limits allow, produced while `tasks` is read."""
    packer = Packer(run, bucket, algorithms)
    for task in tasks:
        yield from packer.add(task)
    yield from packer.flush()
