"""A ledger: it remembers the digests of object versions, their sources and times, and forgets nothing.

Every kind of ledger keeps three protocols: digests of object versions, leases of long work, the history of each key.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from auditor.errors import DigestConflict
from auditor.model.object import AnyVersion

Source = Literal["auditor", "s3"]
"""The source of a digest: we computed it from the bytes that we read, or S3 states it."""
AUDITOR: Final[Source] = "auditor"
S3: Final[Source] = "s3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Digests of one object version. version_id: None when it is not known (the ledger writes "null").

    etag: without quotes. size: bytes. digests: algorithm ("sha256") to lower-case hex. hashed_at: ISO 8601, UTC.
    bytes_read: bytes read for it, in cut and repeated reads too; 0 when the digest is S3's.
    """

    bucket: str
    key: str
    version_id: str | None
    etag: str
    size: int
    digests: Mapping[str, str]
    hashed_at: str
    source: Source = AUDITOR
    bytes_read: int = 0


class DigestStore(Protocol):
    """Every write is conditional and idempotent. Raises errors.LedgerError when the store cannot be used."""

    async def known(
        self, bucket: str, refs: Sequence[AnyVersion], algorithms: Sequence[str]
    ) -> list[Mapping[str, str]]:
        """For each ref, in order, its digests of `algorithms` ({} when there are none).

        A row matches by key, etag and size, and by version when both sides know one ("null" means not known).
        """
        ...

    async def record(self, entry: Entry) -> bool:
        """Add the entry's digests to its identity (bucket, key, version_id or "null", etag).

        True: something new was written. False: the ledger had it already. Raises errors.DigestConflict when the ledger
        has another digest of the same algorithm, and leaves that digest as it is. The same step adds a "recorded" or a
        "conflict" line to the key's history. S3's digest becomes ours when we read the same one.
        """
        ...

    async def record_many(self, entries: Sequence[Entry]) -> list[bool | DigestConflict]:
        """`record` for many at once, much cheaper than one by one: its results and conflicts, in order.

        A conflict of one entry does not affect the others.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The hashing of one object version with some algorithms; works with equal fields are the same work."""

    bucket: str
    key: str
    version_id: str | None
    etag: str
    algorithms: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to do a work. owner: its holder. until: seconds since the epoch; then anyone may take it over.

    fence: grows with every claim; a write with an old fence is refused. hops: claims so far. checkpoint: the JSON
    object that the last holder wrote; its reader checks it.
    """

    work: Work
    owner: str
    until: float
    fence: int
    hops: int
    checkpoint: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """Another owner has the lease. until: seconds since the epoch."""

    owner: str
    until: float


class Leases(Protocol):
    """Leases of works, with object checkpoints. Raises errors.LedgerError, and LeaseLostError."""

    async def claim(self, work: Work, owner: str, seconds: float) -> Lease | Held:
        """Take a work without a holder, or with an expired lease, with its last checkpoint; one claimant of many wins.

        An owner may claim again the work that it holds.
        """
        ...

    async def renew(self, lease: Lease, seconds: float, checkpoint: Mapping[str, Any] | None = None) -> Lease:
        """Extend the lease, and write the checkpoint if given; raises LeaseLostError when another owner has it."""
        ...

    async def release(self, lease: Lease, *, done: bool) -> None:
        """End the lease, so that others may claim the work at once. done: forget the checkpoint.

        A lease that another owner took over stays as it is; that is no error.
        """
        ...


What = Literal[
    "recorded", "verified", "mismatch", "conflict", "changed", "missing", "unreadable", "created", "deleted", "imported"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of a key's history. at: ISO 8601, UTC. detail: short texts by name (algorithm, digest, source).

    The ledger cuts a text after 1,000 characters, and keeps equal events once.
    """

    key: str
    at: str
    what: What
    version_id: str | None = None
    etag: str | None = None
    size: int | None = None
    detail: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One digest as evidence. recorded_at, verified_at: ISO 8601, UTC; verified_at None: never read again."""

    digest: str
    source: Source
    recorded_at: str
    verified_at: str | None
    bytes_read: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One identity of a key in the ledger. version_id: "null" when it is not known. digests: by algorithm.

    first_seen: the time of its first digest. sequencer: of the notification of this version, "" without one.
    """

    version_id: str
    etag: str
    size: int
    digests: Mapping[str, Known]
    first_seen: str
    sequencer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """An expected digest, imported from a checksum manifest: of a key, for any version. origin: the manifest's name."""

    key: str
    algorithm: str
    digest: str
    origin: str
    imported_at: str
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """The present state of one key that has a digest, an expectation or a notification.

    versions: the versions with digests, the newest last: by the sequencers of their notifications, else by the order of
    their records. deleted_at: the time of a deletion, unless a newer notification or a much later read shows the object
    again; a deletion that names one of several known versions concerns that version alone.
    """

    key: str
    versions: tuple[Version, ...]
    expectations: tuple[Expectation, ...] = ()
    deleted_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A notification of a key. sequencer: hexadecimal; to compare two, pad both with zeros on the right to one length
    (S3 User Guide, notification-content-structure).
    """

    key: str
    sequencer: str
    deleted: bool
    at: str
    version_id: str | None = None
    etag: str | None = None
    size: int | None = None


class KeyHistory(Protocol):
    """The history of keys; lines are only added. Raises errors.LedgerError."""

    async def note(self, bucket: str, events: Sequence[Event]) -> None:
        """Append to the history. A "verified" event also sets verified_at of the digest with its detail's algorithm.

        Such an event has the version_id and the etag of the ledger's Version. verified_at never goes back.
        """
        ...

    async def history(self, bucket: str, key: str) -> list[Event]:
        """All lines of a key, in the order of writing."""
        ...

    async def arrived(self, bucket: str, notice: Notice) -> bool:
        """Remember a notification and add it to the history. False: a newer one of its key came before, and stays.

        The same notification again is True and writes nothing. Without a sequencer the time decides.
        """
        ...

    async def expect(self, bucket: str, expectations: Sequence[Expectation]) -> int:
        """Keep expected digests; one replaces the earlier one of its key, algorithm and origin. The history keeps both.

        Returns how many are new or changed.
        """
        ...

    async def subject(self, bucket: str, key: str) -> KeyRecord | None:
        """The record of one key; None when the ledger has nothing of it."""
        ...

    def subjects(self, bucket: str, prefix: str = "") -> AsyncGenerator[KeyRecord, None]:
        """Every key of a bucket below a prefix, in the order of S3's listing (UTF-8 bytes), in bounded memory.

        Close the generator when you leave it early: it may hold a file.
        """
        ...


class Ledger(DigestStore, Leases, KeyHistory, Protocol):
    """All three protocols in one store."""
