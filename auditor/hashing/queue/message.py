"""A message of the queue: objects of one bucket to hash; written small, read strictly.

The reader ignores unknown fields, and a message that is written again has lost them. A newer version of ours that adds
a field keeps the version number only where that does no harm; else it raises the number, and older workers refuse it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from auditor.errors import MessageError
from auditor.hashing.limits import LARGE, MIB
from auditor.model.digest import ALGORITHMS
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

MAX_HOPS: Final = 10_000
"""Hops that a message may name: far more than any worker lets an object have."""

_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}\Z")
_MAX_NUMBER: Final = 2**53
_MAX_TEXT: Final = 1024


@dataclass(frozen=True, slots=True)
class HashTask(ObjectVersion):
    """One object version to hash.

    attempts: failed ones so far. hops: workers that left it unfinished for want of time. sequencer: of the S3 event, in
    hexadecimal; "" without an event.
    """

    attempts: int = 0
    hops: int = 0
    sequencer: str = ""

    @classmethod
    def of(cls, ref: ObjectRef) -> HashTask:
        """The task of a listed object."""
        return cls(ref.key, ref.version_id, ref.etag, ref.size)


@dataclass(frozen=True, slots=True)
class HashMessage:
    """Objects of one bucket, and the wanted algorithms. run: the audit's ID; "event" for S3's events."""

    run: str
    bucket: str
    algorithms: tuple[str, ...]
    tasks: tuple[HashTask, ...]


def encode(message: HashMessage) -> str:
    """ASCII JSON without spaces, for SQS refuses some characters and counts bytes."""
    return _envelope(message.run, message.bucket, message.algorithms, ",".join(map(_encode_task, message.tasks)))


def decode(body: str) -> HashMessage:
    """Read one of our messages; raises MessageError with a reason that never quotes the text."""
    return decode_document(parse(body))


def decode_document(document: dict[str, Any]) -> HashMessage:
    """The same, of the parsed JSON."""
    version = document.get("v")
    if type(version) is not int or version != VERSION:  # True and 1.0 are equal to 1
        raise MessageError(f"field v is not {VERSION}, the only version known")
    objects = document.get("objects")
    if not isinstance(objects, list) or not objects:
        raise MessageError("objects is not a list with entries")
    if len(objects) > MAX_OBJECTS:
        raise MessageError(f"objects has {len(objects)} entries, more than {MAX_OBJECTS}")
    return HashMessage(
        run=plain_text(document, "run", "run"),
        bucket=bucket_name(document, "bucket", "bucket"),
        algorithms=_algorithms(document.get("algorithms")),
        tasks=tuple(_task(entry, f"objects[{index}]") for index, entry in enumerate(objects)),
    )


def parse(body: str) -> dict[str, Any]:
    """The JSON object in a message's body; anything else is a MessageError, and so is a field that is there twice."""
    try:
        document = json.loads(body, object_pairs_hook=_named_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise MessageError("the body is not JSON") from error
    return as_object(document, "the body")


def _named_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Of two fields by one name each reader may take another: nobody who means well writes that."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise MessageError("the body names a field twice")
    return fields


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def as_object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MessageError(f"{name} is not a JSON object")
    return value


def text(holder: dict[str, Any], field: str, name: str) -> str:
    """A required string of 1 to 1,024 bytes of UTF-8: no field of ours is longer, keys included."""
    value = holder.get(field)
    if not isinstance(value, str) or not value:
        raise MessageError(f"{name} is not a string with text")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise MessageError(f"{name} is not valid unicode") from error
    if size > _MAX_TEXT:
        raise MessageError(f"{name} has {size} bytes, more than {_MAX_TEXT}")
    return value


def plain_text(holder: dict[str, Any], field: str, name: str) -> str:
    """The same, of printable ASCII only: it goes into a request's header, or into the log."""
    value = text(holder, field, name)
    if not (value.isascii() and value.isprintable()):
        raise MessageError(f"{name} has characters that are not printable ASCII")
    return value


def whole_number(holder: dict[str, Any], field: str, name: str, largest: int = _MAX_NUMBER) -> int:
    """A required whole number from 0 to `largest`."""
    value = holder.get(field)
    if isinstance(value, bool) or not isinstance(value, int):
        raise MessageError(f"{name} is not a whole number")
    if not 0 <= value <= largest:
        raise MessageError(f"{name} is negative or too large")
    return value


def sequencer_of(holder: dict[str, Any], field: str, name: str) -> str:
    """1 to 64 hexadecimal digits; "" where the field is missing, as in S3's older events."""
    if field not in holder:
        return ""
    value = plain_text(holder, field, name)
    if not is_sequencer(value):
        raise MessageError(f"{name} is not hexadecimal of at most {MAX_LENGTH} digits")
    return value


def bucket_name(holder: dict[str, Any], field: str, name: str) -> str:
    value = text(holder, field, name)
    if not _BUCKET.match(value):
        raise MessageError(f"{name} is not a bucket's name")
    return value


def _algorithms(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise MessageError("algorithms is not a list with entries")
    if any(name not in ALGORITHMS for name in value):
        raise MessageError(f"algorithms names one that is not known; known are {', '.join(ALGORITHMS)}")
    return tuple(dict.fromkeys(value))


def _task(value: object, name: str) -> HashTask:
    entry = as_object(value, name)
    versioned = entry.get("version_id") is not None
    return HashTask(
        key=text(entry, "key", f"{name}.key"),
        version_id=plain_text(entry, "version_id", f"{name}.version_id") if versioned else None,
        etag=plain_text(entry, "etag", f"{name}.etag"),
        size=whole_number(entry, "size", f"{name}.size"),
        attempts=whole_number(entry, "attempts", f"{name}.attempts"),
        hops=whole_number(entry, "hops", f"{name}.hops", MAX_HOPS) if "hops" in entry else 0,
        sequencer=sequencer_of(entry, "sequencer", f"{name}.sequencer"),
    )


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
