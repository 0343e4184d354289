"""The result of hashing one object: one type for each way it can end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from auditor.aws.failures import doom, is_gone, is_transient
from auditor.errors import BucketError, CallFailed
from auditor.hashing.queue.message import HashTask
from auditor.ledger.base import AUDITOR, Entry, Source
from auditor.model.dates import now_in_utc
from auditor.model.object import AnyVersion


@dataclass(frozen=True, slots=True)
class Hashed:
    """Every byte was read and counted. digests: algorithm to lower-case hex.

    bytes_read: with those of cut and repeated reads.
    """

    task: HashTask
    digests: Mapping[str, str]
    bytes_read: int = 0

    def entry(self, bucket: str, hashed_at: str | None = None) -> Entry:
        """The ledger's entry. hashed_at: ISO 8601, UTC; None: now."""
        return entry_of(bucket, self.task, self.digests, bytes_read=self.bytes_read, hashed_at=hashed_at)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The digest of the bytes differs from S3's checksum; the ledger must not record it.

    ours, stored: lower-case hex of `algorithm`.
    """

    task: HashTask
    algorithm: str
    ours: str
    stored: str
    bytes_read: int = 0


@dataclass(frozen=True, slots=True)
class Paused:
    """The hashing stopped inside the object. bytes: hashed from the object's start; gained: hashed in this pass.

    checkpoint: a JSON object from which to continue; None where there is none, and `reason` says why.
    """

    task: HashTask
    checkpoint: Mapping[str, Any] | None
    bytes: int
    reason: str = ""
    gained: int = 0


@dataclass(frozen=True, slots=True)
class Superseded:
    """The listed version is gone. code: `Overwritten` or `Vanished`."""

    task: HashTask
    code: str


@dataclass(frozen=True, slots=True)
class Unhashable:
    """No attempt can read the bytes. code: `archived` or `SSE-C`."""

    task: HashTask
    code: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The object could not be read. code: S3's, or `ByteCount`, `SizeDiffers`. retryable: now, in place."""

    task: HashTask
    code: str
    retryable: bool


Result = Hashed | Mismatch | Paused | Superseded | Unhashable | Failed


def classify(task: HashTask, failure: CallFailed) -> Superseded | Unhashable | Failed:
    """The result of a failed GetObject. Raises the error that every object of every bucket would meet."""
    if failure.code in ("PreconditionFailed", "412") or failure.status == 412:
        return Superseded(task, "Overwritten")
    if is_gone(failure):
        return Superseded(task, "Vanished")
    if failure.code == "InvalidObjectState":
        return Unhashable(task, "archived")
    if failure.code == "InvalidRequest" and failure.status == 400:
        # S3 asks for the customer's key this way, without a code of its own.
        return Unhashable(task, "SSE-C")
    doomed = doom(failure, "")
    if doomed is not None and not isinstance(doomed, BucketError):
        raise doomed from failure
    return Failed(task, failure.code, retryable=is_transient(failure))


def entry_of(
    bucket: str,
    version: AnyVersion,
    digests: Mapping[str, str],
    *,
    source: Source = AUDITOR,
    bytes_read: int = 0,
    hashed_at: str | None = None,
) -> Entry:
    """The ledger's entry of these digests. hashed_at: ISO 8601, UTC; None: now."""
    return Entry(
        bucket=bucket,
        key=version.key,
        version_id=version.version_id,
        etag=version.etag,
        size=version.size,
        digests=digests,
        hashed_at=hashed_at or now_in_utc(),
        source=source,
        bytes_read=bytes_read,
    )
