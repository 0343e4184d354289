"""The result of hashing one object: one class for each way in which the hashing can end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from auditor.aws.failures import doom, is_gone, is_transient
from auditor.errors import BucketError, CallFailed
from auditor.hashing.queue.message import HashTask
from auditor.ledger.base import AUDITOR, Entry, Source
from auditor.model.dates import now_in_utc
from auditor.model.object import AnyVersion


class Hashed(Struct, frozen=True):
    """The result for an object whose bytes were all read and hashed.

    digests: lower-case hex by algorithm. bytes_read: number of bytes read, repeated reads included.
    """

    task: HashTask
    digests: Mapping[str, str]
    bytes_read: int = 0

    def entry(self, bucket: str, hashed_at: str | None = None) -> Entry:
        """Return the entry with which these digests are recorded in the ledger.

        hashed_at: ISO 8601 in UTC; None for the present time.
        """
        return entry_of(bucket, self.task, self.digests, bytes_read=self.bytes_read, hashed_at=hashed_at)


class Mismatch(Struct, frozen=True):
    """The result for an object whose bytes have another digest than S3's checksum. The ledger must not record this
    digest.
    """

    task: HashTask
    algorithm: str
    ours: str
    """The digest of the bytes, lower-case hex."""
    stored: str
    """S3's checksum, lower-case hex."""
    bytes_read: int = 0
    """Number of bytes read, repeated reads included."""


class Paused(Struct, frozen=True):
    """The result for an object whose hashing was stopped before the object's end."""

    task: HashTask
    checkpoint: Mapping[str, Any] | None
    """The JSON object with which another process continues; None if this machine cannot make one."""
    bytes: int
    """Number of bytes hashed, from the object's start."""
    reason: str = ""
    """Why this machine cannot make a checkpoint; "" if it can."""
    gained: int = 0
    """Number of bytes that this process has hashed. Bytes before the checkpoint with which the process began do not
    count."""


class Superseded(Struct, frozen=True):
    """The result for an object whose listed version no longer exists.

    code: `Overwritten`, or `Vanished` after a deletion.
    """

    task: HashTask
    code: str


class Unhashable(Struct, frozen=True):
    """The result for an object whose bytes no retry can read.

    code: `archived`, or `SSE-C` if a customer's key encrypts the object.
    """

    task: HashTask
    code: str


class Failed(Struct, frozen=True):
    """The result for an object that could not be read.

    code: S3's error code, `ByteCount` or `SizeDiffers`. retryable: True if another attempt may succeed at once. outage:
    True if S3 itself failed or the connection did, so that the failure says nothing about the object.
    """

    task: HashTask
    code: str
    retryable: bool
    outage: bool = False


Result = Hashed | Mismatch | Paused | Superseded | Unhashable | Failed


def classify(task: HashTask, failure: CallFailed) -> Superseded | Unhashable | Failed:
    """Return the result of hashing an object whose GetObject call failed with `failure`.

    Raises an error that every object of every bucket would meet.
    """
    if failure.code in ("PreconditionFailed", "412") or failure.status == 412:
        return Superseded(task, "Overwritten")
    if is_gone(failure):
        return Superseded(task, "Vanished")
    if failure.code == "InvalidObjectState":
        return Unhashable(task, "archived")
    if failure.code == "InvalidRequest" and failure.status == 400:
        # S3 gives this answer if the customer's key is missing; S3 has no error code for that case alone.
        return Unhashable(task, "SSE-C")
    doomed = doom(failure, "")
    if doomed is not None and not isinstance(doomed, BucketError):
        raise doomed from failure
    outage = is_transient(failure)
    return Failed(task, failure.code, retryable=outage, outage=outage)


def entry_of(
    bucket: str,
    version: AnyVersion,
    digests: Mapping[str, str],
    *,
    source: Source = AUDITOR,
    bytes_read: int = 0,
    hashed_at: str | None = None,
) -> Entry:
    """Return the entry with which digests of an object version are recorded in the ledger.

    hashed_at: ISO 8601 in UTC; None for the present time.
    """
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
