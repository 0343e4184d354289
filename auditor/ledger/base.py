"""A ledger: it records the digests of object versions, their sources and times, and deletes nothing.

Every kind of ledger implements three protocols: digests of object versions, leases of long work, the history of each
key.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from auditor.errors import DigestConflict
from auditor.model.object import AnyVersion

Source = Literal["auditor", "s3"]
"""The source of a digest: the auditor computed it from the bytes, or S3 states it as its checksum."""
AUDITOR: Final[Source] = "auditor"
S3: Final[Source] = "s3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Digests of one object version, to be recorded."""

    bucket: str
    key: str
    version_id: str | None
    """None if the version is unknown; the ledger then writes "null"."""
    etag: str
    """Without quotes."""
    size: int
    """Bytes."""
    digests: Mapping[str, str]
    """Algorithm ("sha256") to lower-case hex."""
    hashed_at: str
    """ISO 8601, UTC."""
    source: Source = AUDITOR
    bytes_read: int = 0
    """Number of bytes read for the digests, those of cut and repeated reads included; 0 if they are S3's."""


class DigestStore(Protocol):
    """The digests of object versions. Every write is conditional and idempotent.

    Raises errors.LedgerError if the store cannot be used.
    """

    async def known(
        self, bucket: str, refs: Sequence[AnyVersion], algorithms: Sequence[str]
    ) -> list[Mapping[str, str]]:
        """Return the digests of each ref by `algorithms`, in the order of `refs`; {} for a ref without digests.

        A row matches by key, etag and size, and by version if both sides know one ("null" means that it is unknown).
        """
        ...

    async def record(self, entry: Entry) -> bool:
        """Add the entry's digests to its identity (bucket, key, version_id or "null", etag).

        Return True if something new was written, False if the ledger had it already. If the ledger has another digest
        by the same algorithm, keep the ledger's digest and raise errors.DigestConflict. The same step adds a "recorded"
        or a "conflict" line to the key's history. If the ledger has S3's digest and we read the same one, its source
        becomes the auditor.
        """
        ...

    async def record_many(self, entries: Sequence[Entry]) -> list[bool | DigestConflict]:
        """Record many entries at once, much cheaper than one by one. Return record()'s answer or the conflict for each.

        A conflict of one entry does not affect the others.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The work that a lease is for: the hashing of one object version by some algorithms."""

    bucket: str
    key: str
    version_id: str | None
    etag: str
    algorithms: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right of one owner to do one work until a time."""

    work: Work
    owner: str
    """The holder's name."""
    until: float
    """Seconds since the epoch; afterwards anyone may take the work over."""
    fence: int
    """A number that grows with every claim. A write with an old fence is refused."""
    hops: int
    """Number of claims so far."""
    checkpoint: Mapping[str, Any] | None = None
    """The JSON object that the last holder wrote, unchecked; None if there is none."""


@dataclass(frozen=True, slots=True)
class Held:
    """The answer to a claim if another owner has the lease. until: seconds since the epoch."""

    owner: str
    until: float


class Leases(Protocol):
    """The leases of works, with object checkpoints. Raises errors.LedgerError, and LeaseLostError."""

    async def claim(self, work: Work, owner: str, seconds: float) -> Lease | Held:
        """Take a work that has no holder or an expired lease; the lease has the work's last checkpoint. If several
        owners claim the work at once, one wins. Return Held if another owner has the lease.

        A lease that lasts longer than `seconds` from now belongs to a holder whose clock runs ahead: it ends after
        `seconds`, unless that holder renews it. An owner may claim the work again that it holds.
        """
        ...

    async def renew(self, lease: Lease, seconds: float, checkpoint: Mapping[str, Any] | None = None) -> Lease:
        """Extend the lease, and write the checkpoint if there is one. Raise LeaseLostError if another owner has the
        lease.
        """
        ...

    async def release(self, lease: Lease, *, done: bool) -> None:
        """End the lease: others may claim the work at once. done: delete the checkpoint.

        If another owner took the lease over, change nothing; that is no error.
        """
        ...


What = Literal[
    "recorded",
    "verified",
    "mismatch",
    "conflict",
    "changed",
    "missing",
    "lost",
    "unreadable",
    "created",
    "deleted",
    "listed",
    "retired",
    "acknowledged",
    "imported",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of a key's history.

    The ledger cuts a text after 1,000 characters, and keeps equal events once.
    """

    key: str
    at: str
    """ISO 8601, UTC."""
    what: What
    version_id: str | None = None
    etag: str | None = None
    size: int | None = None
    detail: Mapping[str, str] = field(default_factory=dict)
    """Short texts by name (algorithm, digest, source)."""
    chain: str = field(default="", compare=False, repr=False)
    """For a "verified" event: the `chain` of the Known that the writer read; "" is right too, but costs a read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One digest in the ledger, with its evidence."""

    digest: str
    source: Source
    recorded_at: str
    """ISO 8601, UTC."""
    verified_at: str | None
    """ISO 8601, UTC; None if the object was never read again."""
    bytes_read: int
    """As in Entry."""
    damaged: bool = False
    """True if the row's seal is wrong, and the history has no sound line of this digest."""
    chain: str = field(default="", compare=False, repr=False)
    """A text of the kind of ledger about the last verification. A "verified" event passes it back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One identity of a key in the ledger: a version and its ETag."""

    version_id: str
    """"null" if it is unknown."""
    etag: str
    size: int
    digests: Mapping[str, Known]
    """By algorithm."""
    first_seen: str
    """Time of its first digest."""
    sequencer: str = ""
    """Sequencer of the notification of this version; "" if there was none."""
    removed_at: str | None = None
    """Time at which this version was deleted for good; None if no notification reported that, or if a later read shows
    the version."""
    retired_at: str | None = None
    """Time at which a person retired this version or its key; None if nobody did, or if the version was read later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """An expected digest, imported from a checksum manifest. It belongs to a key, whatever its version."""

    key: str
    algorithm: str
    digest: str
    origin: str
    """Name of the manifest file."""
    imported_at: str
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """The present state of one key that has a digest, an expectation or a notification."""

    key: str
    versions: tuple[Version, ...]
    """The versions with digests, the newest last: by sequencer, or by the order of recording if there is none."""
    expectations: tuple[Expectation, ...] = ()
    deleted_at: str | None = None
    """Time at which a deletion or a delete marker hid the key, or its last version was deleted for good. None if that
    never happened, or if a newer notification, the removal of the marker, or a much later listing or read shows the
    object."""
    noticed_at: str | None = None
    """Time of the newest notification; None if there was none."""
    unrecorded: bool = False
    """True if a notification reported newer content than the last of `versions`."""
    damage: tuple[str, ...] = ()
    """The rows of this key whose seals are wrong: algorithm, ETag and version of each. `versions` has the history's
    digest in their place, or the digest marked as damaged."""
    retired_at: str | None = None
    """Time at which a person retired the key or its last version; None if nobody did, or if the key was seen later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A notification of a key."""

    key: str
    sequencer: str
    """Hexadecimal. To compare two, pad the shorter one with zeros on the right (S3 User Guide,
    notification-content-structure)."""
    deleted: bool
    """True if the notification reports a deletion."""
    at: str
    """ISO 8601, UTC."""
    version_id: str | None = None
    """The version; in a deletion, the version of the delete marker."""
    etag: str | None = None
    size: int | None = None


class KeyHistory(Protocol):
    """The history of keys. Lines are only added. Raises errors.LedgerError."""

    async def note(self, bucket: str, events: Sequence[Event]) -> None:
        """Append events to the history. Some events also change the key's record, unless the record has a later time.

        "verified" sets verified_at of the digest that its detail's algorithm names. Such an event has the version_id
        and the etag of the ledger's Version. "deleted" with a version_id: this version or delete marker was deleted for
        good. "listed": the key had a current object, whatever earlier notifications said. "retired": a person does not
        expect the version any more; without a version_id, the key and its expected digests.
        """
        ...

    async def history(self, bucket: str, key: str) -> list[Event]:
        """Return all lines of a key, in the order of writing."""
        ...

    async def arrived(self, bucket: str, notice: Notice) -> bool:
        """Record a notification and add it to the history. Return False if a newer notification of the key came before;
        the newer one stays.

        If the same notification comes again, return True and write nothing. If one has no sequencer, the times decide.
        """
        ...

    async def expect(self, bucket: str, expectations: Sequence[Expectation]) -> int:
        """Record expected digests. A digest replaces that of the same key, algorithm and origin; the history keeps
        both.

        Return the number of digests that are new or changed.
        """
        ...

    async def subject(self, bucket: str, key: str) -> KeyRecord | None:
        """Return the record of one key; None if the ledger has nothing about it."""
        ...

    def subjects(self, bucket: str, prefix: str = "") -> AsyncGenerator[KeyRecord, None]:
        """Yield the record of every key below a prefix, in the order of S3's listing (UTF-8 bytes), in bounded memory.

        Close the generator if you leave it early: it may hold a file.
        """
        ...


Soundness = Literal["sound", "damaged", "unsealed"]
SOUND: Final[Soundness] = "sound"
DAMAGED: Final[Soundness] = "damaged"
UNSEALED: Final[Soundness] = "unsealed"
"""The state of a row or line without a seal, which an earlier version of this program wrote."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of the check of one row, or of one line of the history."""

    bucket: str
    key: str
    kind: Literal["row", "line"]
    state: Soundness
    words: str = ""
    """The damage in words; "" if there is none."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """A line of the history, and the state of its seal."""

    event: Event
    seal: Soundness


class Ledger(DigestStore, Leases, KeyHistory, Protocol):
    """A ledger: all three protocols in one store."""

    def histories(self, bucket: str, prefix: str = "") -> AsyncGenerator[list[HistoryEntry], None]:
        """Yield all lines of every key below a prefix in parts, in bounded memory.

        Keys come in the order of S3's listing, the lines of a key in the order of writing. Close the generator if you
        leave it early.
        """
        ...

    def checked(self) -> AsyncGenerator[list[Checked], None]:
        """Check the seals of all rows and lines, and compare the rows with the lines, in bounded memory.

        Yield the results in parts. Close the generator if you leave it early.
        """
        ...
