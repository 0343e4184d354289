"""The interface of a ledger, which records the digests of object versions, with source and time, and deletes nothing.

Every kind of ledger implements three protocols: digests of object versions, leases of work, histories of object keys.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from auditor.errors import DigestConflict
from auditor.ledger.leases import Leases
from auditor.model.object import AnyVersion

Source = Literal["auditor", "s3"]
"""The source of a digest: the auditor computed it from the bytes, or S3 states it as its checksum."""
AUDITOR: Final[Source] = "auditor"
S3: Final[Source] = "s3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Digests of one object version, to be recorded in the ledger."""

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
    """The part of a ledger that keeps digests of object versions. Every write is conditional and idempotent.

    Raises errors.LedgerError if the store cannot be used.
    """

    async def known(
        self, bucket: str, refs: Sequence[AnyVersion], algorithms: Sequence[str]
    ) -> list[Mapping[str, str]]:
        """Return the recorded digests, by algorithm, of each object version in `refs`, in order; {} if there are none.

        A row of the ledger belongs to an object version if key, ETag and size are equal. If both have a version ID, it
        must be equal too ("null" means that it is unknown).
        """
        ...

    async def record(self, entry: Entry) -> bool:
        """Record the entry's digests for its object version (bucket, key, version ID or "null", ETag).

        Return True if something new was written, False if the ledger had it already. If the ledger has another digest
        by the same algorithm, keep the ledger's digest and raise errors.DigestConflict. The same step adds a "recorded"
        or a "conflict" event to the key's history. If the ledger has the same digest from S3 and the auditor has
        computed it now, the auditor becomes its source.
        """
        ...

    async def record_many(self, entries: Sequence[Entry]) -> list[bool | DigestConflict]:
        """Record many entries at once, much cheaper than one by one. Return for each what record() returns or raises.

        A conflict of one entry does not affect the others.
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
    """One event in the history of an object key, for example that a digest was recorded or verified.

    The ledger cuts a text after 1,000 characters, and keeps equal events only once.
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
    """A digest that the ledger has, with its source and its dates."""

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
    """An object version as the ledger has it: a version ID with an ETag, and the digests."""

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
    """A digest that a key should have, imported from a checksum manifest. It is of the key, not of one version."""

    key: str
    algorithm: str
    digest: str
    origin: str
    """Name of the manifest file."""
    imported_at: str
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """The present state of one object key in the ledger: its versions, expected digests, deletion and retirement."""

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
    """A notification of S3 on one object key: an object was created or deleted."""

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
    """The part of a ledger that keeps the histories of object keys, which only grow. Raises LedgerError."""

    async def note(self, bucket: str, events: Sequence[Event]) -> None:
        """Append events to the histories. Some also change the key's record, unless it has a later time.

        "verified" sets verified_at of the digest whose algorithm the detail names; the event has the version ID and the
        ETag of the ledger's Version. "deleted" with a version ID: this version or delete marker was deleted for good.
        "listed": the key had a current object, whatever notifications said before. "retired": a person no longer
        expects the version to exist, or without a version ID, the key and its expected digests.
        """
        ...

    async def history(self, bucket: str, key: str) -> list[Event]:
        """Return all events of a key, in the order in which they were written."""
        ...

    async def arrived(self, bucket: str, notice: Notice) -> bool:
        """Record a notification, also in the history. Return False, and keep the newer one, if a newer notification of
        the key came before.

        Return True, and write nothing, if the same one comes again. Sequencers decide, or the times if one lacks it.
        """
        ...

    async def expect(self, bucket: str, expectations: Sequence[Expectation]) -> int:
        """Record expected digests, and return how many of them are new or changed.

        A digest replaces an earlier one of the same key, algorithm and manifest; the history keeps both.
        """
        ...

    async def subject(self, bucket: str, key: str) -> KeyRecord | None:
        """Return the ledger's record of one key; None if the ledger does not know the key."""
        ...

    def subjects(self, bucket: str, prefix: str = "", start_after: str = "") -> AsyncGenerator[KeyRecord, None]:
        """Yield the records of all keys that begin with `prefix` and come after `start_after`, in the order of S3's
        listing (UTF-8 bytes).

        Memory is bounded. Close the generator if you leave it early: it may hold a file.
        """
        ...


Soundness = Literal["sound", "damaged", "unsealed"]
SOUND: Final[Soundness] = "sound"
DAMAGED: Final[Soundness] = "damaged"
UNSEALED: Final[Soundness] = "unsealed"
"""The state of a row or line without a seal, which an earlier version of this program wrote."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking one row, or one line of a history, for damage."""

    bucket: str
    key: str
    kind: Literal["row", "line"]
    state: Soundness
    words: str = ""
    """The damage in words; "" if there is none."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One event of a history, and whether its stored line is sound, damaged or without a seal."""

    event: Event
    seal: Soundness


class Ledger(DigestStore, Leases, KeyHistory, Protocol):
    """A whole ledger: digests, leases and histories in one store."""

    def histories(self, bucket: str, prefix: str = "") -> AsyncGenerator[list[HistoryEntry], None]:
        """Yield all events of all keys that begin with `prefix`, in lists, in bounded memory.

        Keys come in the order of S3's listing, the events of a key in the order in which they were written. Close the
        generator if you leave it early: it may hold a file.
        """
        ...

    def checked(self) -> AsyncGenerator[list[Checked], None]:
        """Check all rows and history lines of the ledger for damage: their seals, and if they agree with each other.

        Yield the results in lists, in bounded memory. Close the generator if you leave it early.
        """
        ...
