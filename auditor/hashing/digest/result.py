"""What comes of hashing one object: each way it can end is a type of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from auditor.aws.failures import doom, is_gone, is_transient
from auditor.errors import BucketError, CallFailed
from auditor.hashing.queue.message import HashTask
from auditor.ledger.base import Entry
from auditor.model.dates import now_in_utc


@dataclass(frozen=True, slots=True)
class Hashed:
    """Every byte was read and counted. digests: algorithm to lower-case hex.

    bytes_read: those of cut and repeated reads included. confirmed: algorithms of which S3 stores the very same digest.
    """

    task: HashTask
    digests: Mapping[str, str]
    bytes_read: int = 0
    confirmed: tuple[str, ...] = ()

    def entry(self, bucket: str) -> Entry:
        """What the ledger is to remember of it, as of now."""
        task = self.task
        return Entry(
            bucket=bucket,
            key=task.key,
            version_id=task.version_id,
            etag=task.etag,
            size=task.size,
            digests=self.digests,
            hashed_at=now_in_utc(),
            bytes_read=self.bytes_read,
        )


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The bytes that were read are not those that S3 took a checksum of: never to be recorded as known.

    ours, stored: lower-case hex, of `algorithm`.
    """

    task: HashTask
    algorithm: str
    ours: str
    stored: str
    bytes_read: int = 0


@dataclass(frozen=True, slots=True)
class Paused:
    """It was told to stop in mid-object. bytes: hashed so far, from the object's start; gained: of these, in this pass.

    checkpoint: what goes on from there, a JSON object; None where the state cannot be carried, and reason says why.
    """

    task: HashTask
    checkpoint: Mapping[str, Any] | None
    bytes: int
    reason: str = ""
    gained: int = 0


@dataclass(frozen=True, slots=True)
class Superseded:
    """The listed version is not there any more. code: `Overwritten` or `Vanished`."""

    task: HashTask
    code: str


@dataclass(frozen=True, slots=True)
class Unhashable:
    """Its bytes cannot be read here, however often it is tried. code: `archived` or `SSE-C`."""

    task: HashTask
    code: str


@dataclass(frozen=True, slots=True)
class Failed:
    """It could not be read. code: S3's, or `ByteCount`, `SizeDiffers`. retryable: at once, in place."""

    task: HashTask
    code: str
    retryable: bool


Result = Hashed | Mismatch | Paused | Superseded | Unhashable | Failed


def classify(task: HashTask, failure: CallFailed) -> Superseded | Unhashable | Failed:
    """What a failed GetObject makes of its object; raises where it would befall every object of every bucket."""
    if failure.code in ("PreconditionFailed", "412") or failure.status == 412:
        return Superseded(task, "Overwritten")
    if is_gone(failure):
        return Superseded(task, "Vanished")
    if failure.code == "InvalidObjectState":
        return Unhashable(task, "archived")
    if failure.code == "InvalidRequest" and failure.status == 400:
        # S3 asks for the customer's key this way, and gives no code of its own to it.
        return Unhashable(task, "SSE-C")
    doomed = doom(failure, "")
    if doomed is not None and not isinstance(doomed, BucketError):
        raise doomed from failure
    return Failed(task, failure.code, retryable=is_transient(failure))
