"""What a ledger is: it remembers the digests of objects, who found them and when, and forgets nothing that it was told.

Three protocols that each kind of ledger keeps: digests of object versions, leases of work that takes long, and the
history of each key as evidence.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from auditor.errors import DigestConflict
from auditor.model.object import AnyVersion

Source = Literal["auditor", "s3"]
"""Who computed a digest: we, of the bytes that we read; or S3, whose word it is."""
AUDITOR: Final[Source] = "auditor"
S3: Final[Source] = "s3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Digests of one object version. version_id: None where it is not known (the ledger writes "null").

    etag: without quotes. size: bytes. digests: algorithm ("sha256") to lower-case hex. hashed_at: ISO 8601, UTC.
    bytes_read: how many were read for it, those of cut and repeated reads included; 0 where S3's word was taken.
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
        """For each ref, in order, the digests it has of `algorithms` ({} where none).

        A row matches by key, etag and size, and by version when both sides know one ("null" is not knowing).
        """
        ...

    async def record(self, entry: Entry) -> bool:
        """Add the entry's digests to its identity (bucket, key, version_id or "null", etag).

        True when something new was written, False when it stood there already; raises errors.DigestConflict when
        another digest of the same algorithm stands there, which is then left as it is. What is new is written into the
        key's history with it ("recorded"), and so is a conflict ("conflict"): both in one step, or neither. A digest
        that was S3's word becomes ours when we read the same.
        """
        ...

    async def record_many(self, entries: Sequence[Entry]) -> list[bool | DigestConflict]:
        """`record` for many at once, much cheaper than one by one: what it returns or raises for each, in order.

        Each entry stands for itself: a conflict of one keeps none of the others from being written.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One object version that is being hashed, and with what; two works are one when all fields are equal."""

    bucket: str
    key: str
    version_id: str | None
    etag: str
    algorithms: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to do a work. owner: who holds it. until: seconds since the epoch; later anyone may take it over.

    fence: grows with every claim; a write with an old one is refused. hops: claims so far. checkpoint: what the one
    before wrote, a JSON object as it was given; it is for its reader to check.
    """

    work: Work
    owner: str
    until: float
    fence: int
    hops: int
    checkpoint: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """Another one has the lease. until: seconds since the epoch."""

    owner: str
    until: float


class Leases(Protocol):
    """Who works on an object, until when, and how far it came. Raises errors.LedgerError, and LeaseLostError."""

    async def claim(self, work: Work, owner: str, seconds: float) -> Lease | Held:
        """Take a work that nobody holds, or whose lease ran out, with its last checkpoint; of many claimants one wins.

        The owner itself may claim again what it holds.
        """
        ...

    async def renew(self, lease: Lease, seconds: float, checkpoint: Mapping[str, Any] | None = None) -> Lease:
        """Hold it longer, and write a checkpoint when one is given; raises LeaseLostError when another has taken it."""
        ...

    async def release(self, lease: Lease, *, done: bool) -> None:
        """Let go. done: the checkpoint is forgotten; else it waits for whoever claims next, at once.

        A lease that another one took over is left alone, and that is no error.
        """
        ...


What = Literal[
    "recorded", "verified", "mismatch", "conflict", "changed", "missing", "unreadable", "created", "deleted", "imported"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of a key's history. at: ISO 8601, UTC. detail: short texts by name (algorithm, digest, source).

    A text of more than 1,000 characters is cut there. Two equal events are one: the history holds it once.
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
    """What the ledger knows of one identity of a key. version_id: "null" where it is not known. digests: by algorithm.

    first_seen: when its first digest was recorded. sequencer: of the notification that told of it, "" where none did.
    """

    version_id: str
    etag: str
    size: int
    digests: Mapping[str, Known]
    first_seen: str
    sequencer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """A digest that was made elsewhere and imported: of a key, of whatever version. origin: the manifest's name."""

    key: str
    algorithm: str
    digest: str
    origin: str
    imported_at: str
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """All that the ledger knows of one key now: there is one for a key with a digest, an expectation or a notification.

    deleted_at: when a notification said that it is gone, unless a newer one said that it is there, or it was read long
    after; a deletion that names one of several known versions took that one alone. versions: those that have digests,
    the newest last, by their notifications' sequencers; those without one stand by when they were recorded.
    """

    key: str
    versions: tuple[Version, ...]
    expectations: tuple[Expectation, ...] = ()
    deleted_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What a notification says of a key. sequencer: hexadecimal, compared after padding both with zeros on the right to
    one length (S3 User Guide, notification-content-structure).
    """

    key: str
    sequencer: str
    deleted: bool
    at: str
    version_id: str | None = None
    etag: str | None = None
    size: int | None = None


class KeyHistory(Protocol):
    """The history of keys: appended to, never overwritten. Raises errors.LedgerError."""

    async def note(self, bucket: str, events: Sequence[Event]) -> None:
        """Append to the history. A "verified" event also sets verified_at of the digest of its detail's algorithm.

        It must name version_id and etag as the ledger's Version has them. verified_at never goes back.
        """
        ...

    async def history(self, bucket: str, key: str) -> list[Event]:
        """All that was ever written of a key, in the order in which it was written."""
        ...

    async def arrived(self, bucket: str, notice: Notice) -> bool:
        """Remember a notification, and write it into the history; False when a newer one of its key came before, which
        then stands. The same one again is True, and writes nothing twice. Without a sequencer its time decides.
        """
        ...

    async def expect(self, bucket: str, expectations: Sequence[Expectation]) -> int:
        """Keep digests of manifests; one of the same key, algorithm and origin replaces the one before, in the history
        both stay. How many were new or other than before.
        """
        ...

    async def subject(self, bucket: str, key: str) -> KeyRecord | None: ...

    def subjects(self, bucket: str, prefix: str = "") -> AsyncGenerator[KeyRecord, None]:
        """Every key of a bucket below a prefix, in the order of S3's listing (UTF-8 bytes), in bounded memory.

        Whoever leaves it early closes it: it may hold a file.
        """
        ...


class Ledger(DigestStore, Leases, KeyHistory, Protocol):
    """All three in one store."""
