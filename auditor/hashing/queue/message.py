"""The auditor's own queue message: a list of objects of one bucket to hash. Its form is compact, and is read strictly.

A reader ignores fields that it does not know. Such fields are lost when a worker sends the objects again. So a later
release may add a field under the same version number only if this loss does no harm. Otherwise the release must raise
the version number, and older workers refuse the message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from auditor.errors import MessageError
from auditor.hashing.limits import LARGE, MIB
from auditor.model.digest import ALGORITHMS
from auditor.model.json_codec import LONGEST, JsonError, PlainText, Size, matching, parse_object, typed
from auditor.model.object import AnyVersion, ObjectVersion
from auditor.s3.sequencer import MAX_LENGTH, SEQUENCER

VERSION: Final = 1
MAX_OBJECTS: Final = 100
"""Largest number of objects in one message. A message for each object would take a hundred times as many requests.

More objects would gain little. A million objects are 10,000 messages: 1,000 sends of ten, 10,000 invocations. SQS bills
each 64 KB as a request. 100 objects take about 15 KB, so ten messages fit into the 256 KiB of one call. If a worker is
killed, its 100 objects are delivered again; the ledger then has the digests that were recorded."""

MAX_OBJECT_BYTES: Final = 256 * MIB
"""Largest sum of the sizes of a message's objects, in bytes. At 5 MB/s, they take one of the 15 minutes that Lambda
gives."""

MAX_BODY: Final = 200_000
"""Largest size of a message's body, in bytes. SQS takes 1 MiB, but queues made before 2025, and other servers, take 256
KiB with attributes."""

MOST_HOPS_READ: Final = 10_000
"""Largest number of hops that a reader accepts in a message: far more than any worker allows."""

BucketName = Annotated[str, matching("[A-Za-z0-9][A-Za-z0-9._-]{1,254}", "is not a bucket's name")]
Sequencer = Annotated[str, matching(SEQUENCER, f"is not hexadecimal of at most {MAX_LENGTH} digits")]
Hops = Annotated[int, Meta(ge=0, le=MOST_HOPS_READ)]


class HashTask(ObjectVersion, frozen=True):
    """An object version to hash, as a queue message describes it."""

    attempts: int = 0
    """Number of attempts to hash the object that have failed so far."""
    hops: int = 0
    """Number of workers that left the object unfinished, because their time ran out or S3 refused it."""
    sequencer: str = ""
    """Sequencer of the S3 event that reported the object, in hexadecimal; "" if no event did."""

    @classmethod
    def of(cls, ref: AnyVersion) -> HashTask:
        """Return the task to hash an object version."""
        return cls(ref.key, ref.version_id, ref.etag, ref.size)


class HashMessage(Struct, frozen=True):
    """A queue message: objects of one bucket, and the algorithms to hash them by.

    run: ID of the audit that sent the objects, or "event" for objects that S3's events reported.
    """

    run: str
    bucket: str
    algorithms: tuple[str, ...]
    tasks: tuple[HashTask, ...]


class WrittenTask(Struct, frozen=True, kw_only=True):
    """An object version to hash, as a queue message describes it."""

    key: Annotated[str, Meta(min_length=1, extra_json_schema={"maxLength": LONGEST})]
    version_id: PlainText | None = None
    etag: PlainText
    size: Size
    attempts: Size
    """Number of attempts to hash the object that have failed so far."""
    hops: Hops = 0
    """Number of workers that left the object unfinished, because their time ran out or S3 refused it."""
    sequencer: Sequencer = ""
    """Sequencer of the S3 event that reported the object, in hexadecimal; "" if no event did."""

    def task(self) -> HashTask:
        return HashTask(self.key, self.version_id, self.etag, self.size, self.attempts, self.hops, self.sequencer)


class WrittenMessage(Struct, frozen=True):
    """A queue message as it is written: objects of one bucket, and the algorithms to hash them by.

    run: ID of the audit that sent the objects, or "event" for objects that S3's events reported.
    """

    run: PlainText
    bucket: BucketName
    algorithms: tuple[str, ...]
    objects: tuple[WrittenTask, ...]


def encode(message: HashMessage) -> str:
    """Return the body of the message: JSON in ASCII, because SQS refuses some characters, without spaces, because SQS
    counts bytes.
    """
    return _envelope(message.run, message.bucket, message.algorithms, ",".join(map(_encode_task, message.tasks)))


def decode(body: str) -> HashMessage:
    """Read the body of one of the auditor's own messages. Raises MessageError, whose text never quotes the body."""
    with reasons():
        return decode_document(parse(body))


def decode_document(document: dict[str, Any]) -> HashMessage:
    """Read one of the auditor's own messages from its body, parsed as JSON. Raises JsonError."""
    if type(document.get("v")) is not int or document["v"] != VERSION:  # True and 1.0 are equal to 1
        raise JsonError(f"is not {VERSION}, the only version known", "field v")
    message = typed(WrittenMessage, document)
    if not message.algorithms or any(name not in ALGORITHMS for name in message.algorithms):
        raise JsonError(f"is empty or names an unknown one; known ones are {', '.join(ALGORITHMS)}", "algorithms")
    if not 0 < len(message.objects) <= MAX_OBJECTS:
        raise JsonError(f"has {len(message.objects)} entries, not 1 to {MAX_OBJECTS}", "objects")
    for index, one in enumerate(message.objects):
        try:
            length = len(one.key.encode())
        except UnicodeEncodeError as error:
            raise JsonError("is not valid unicode", f"objects[{index}].key") from error
        if length > LONGEST:
            raise JsonError(f"has {length} bytes, more than {LONGEST}", f"objects[{index}].key")
    algorithms = tuple(dict.fromkeys(message.algorithms))
    return HashMessage(message.run, message.bucket, algorithms, tuple(one.task() for one in message.objects))


@contextmanager
def reasons() -> Iterator[None]:
    """Convert a JsonError in this `with` block to a MessageError."""
    try:
        yield
    except JsonError as error:
        raise MessageError(str(error)) from error


def parse(body: str) -> dict[str, Any]:
    """Parse the body of a queue message as a JSON object. Raises JsonError, also if a field is named twice."""
    return parse_object(body, "the body", unique=True)


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
    """Packs objects into queue messages: small objects together, each large object into a message of its own."""

    def __init__(self, run: str, bucket: str, algorithms: Iterable[str]) -> None:
        self._run = run
        self._bucket = bucket
        self._algorithms = tuple(algorithms)
        self._empty_body = len(_envelope(run, bucket, self._algorithms, ""))
        self._tasks: list[HashTask] = []
        self._bytes = 0
        self._body = self._empty_body

    def add(self, task: HashTask) -> list[HashMessage]:
        """Add one object to the message in the making. Return the messages that are complete now, mostly none."""
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

    @property
    def waiting(self) -> Sequence[HashTask]:
        """The objects of the message in the making."""
        return self._tasks

    def flush(self) -> list[HashMessage]:
        """Return the message in the making, unless it is empty, and begin a new one."""
        tasks, self._tasks = tuple(self._tasks), []
        self._bytes, self._body = 0, self._empty_body
        return [self._message(tasks)] if tasks else []

    def _message(self, tasks: tuple[HashTask, ...]) -> HashMessage:
        return HashMessage(self._run, self._bucket, self._algorithms, tasks)


def pack(run: str, bucket: str, algorithms: Iterable[str], tasks: Iterable[HashTask]) -> Iterator[HashMessage]:
    """Yield these objects in as few messages as the limits allow. The tasks are read only as the messages are asked
    for.
    """
    packer = Packer(run, bucket, algorithms)
    for task in tasks:
        yield from packer.add(task)
    yield from packer.flush()
