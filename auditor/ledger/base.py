"""The interface of a ledger, which records the digests of object versions, with source and time, and deletes nothing.

Every kind of ledger implements three protocols: digests of object versions, leases of work, histories of object keys.
An audit asks about its objects in the order of the listing. A ledger that can be read in this order need not be asked
about each object: one pass in key order answers, or questions do, whichever costs less.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Final, Literal, Protocol

from msgspec import Struct, field

from auditor.errors import DigestConflict
from auditor.ledger.leases import Leases
from auditor.model.object import AnyVersion

Source = Literal["auditor", "s3"]
"""The source of a digest: the auditor computed it from the bytes, or S3 states it as its checksum."""
AUDITOR: Final[Source] = "auditor"
S3: Final[Source] = "s3"

Ask = Callable[[Sequence[AnyVersion], Sequence[str]], Awaitable[list[Mapping[str, str]]]]
"""A function that looks up object versions one by one, in any order, as DigestStore.known() does for one bucket."""


class Entry(Struct, frozen=True, kw_only=True):
    """Digests of one object version, to be recorded in the ledger."""

    bucket: str
    key: str
    version_id: str | None
    """ID of the version; None if it is unknown, for which the ledger writes "null"."""
    etag: str
    """The ETag without quotes."""
    size: int
    """Size of the object version in bytes."""
    digests: Mapping[str, str]
    """The digests: algorithm ("sha256") to lower-case hex."""
    hashed_at: str
    """Time at which the digests were computed, ISO 8601 in UTC."""
    source: Source = AUDITOR
    bytes_read: int = 0
    """Number of bytes that the auditor read to compute the digests, repeated reads included; 0 for digests that S3
    computed."""


class HealableDigests(dict[str, str]):
    """Recorded digests of an object version of which a row is damaged: the key's history has what the row had.

    Ledger.heal() writes the row anew.
    """


class DigestStore(Protocol):
    """The part of a ledger that keeps digests of object versions. Every write is conditional, and can be repeated
    without harm.

    Raises errors.LedgerError if the store cannot be used.
    """

    async def known(
        self, bucket: str, refs: Sequence[AnyVersion], algorithms: Sequence[str]
    ) -> list[Mapping[str, str]]:
        """Return for each object version in `refs`, in order, its recorded digests by algorithm; {} if the ledger has
        none.

        The ledger has a digest of an object version if its key, ETag and size are equal. If the ledger's row and the
        object version both have a version ID, the two IDs must be equal too. "null" means that the version ID is
        unknown.

        A damaged row counts by the copy in the key's history, if that copy's line is sound: the answer is then
        HealableDigests, unless it was found without reading the row. Without such a line, the row counts as missing.
        """
        ...

    def in_order(self, bucket: str) -> OrderedReader:
        """Return a reader that looks up the bucket's object versions in the order of S3's listing.

        It is much cheaper than known() for many objects. The caller must close it.
        """
        ...

    async def record(self, entry: Entry) -> bool:
        """Record the entry's digests for its object version (bucket, key, version ID or "null", ETag).

        Return True if something new was written, False if the ledger had all of the entry already. Each new digest also
        gets a "recorded" event in the key's history.

        A damaged row is first healed, as Ledger.heal() does. If the ledger has another digest by the same algorithm,
        keep the ledger's digest, write a "conflict" event, and raise errors.DigestConflict. If the ledger has the same
        digest from S3, and the entry has it from the auditor, change the digest's source to the auditor.
        """
        ...

    async def record_many(self, entries: Sequence[Entry]) -> list[bool | DigestConflict]:
        """Record many entries at once, which is much cheaper than one by one.

        Return for each entry, in order, the answer of record(), or the DigestConflict that record() would raise. A
        conflict of one entry does not affect the others.
        """
        ...


Soundness = Literal["sound", "damaged"]
SOUND: Final[Soundness] = "sound"
DAMAGED: Final[Soundness] = "damaged"

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


class Event(Struct, frozen=True, kw_only=True):
    """One event in the history of an object key, for example that a digest was recorded or verified.

    The ledger cuts each text of `detail` after 1,000 characters, and keeps only one of several equal events.
    """

    key: str
    at: str
    """Time of the event, ISO 8601 in UTC."""
    what: What
    version_id: str | None = None
    etag: str | None = None
    size: int | None = None
    detail: Mapping[str, str] = field(default_factory=dict)
    """Short texts by name (algorithm, digest, source)."""
    seal: Soundness = SOUND
    """Whether the history line that the event was read from is sound or damaged."""

    @classmethod
    def of(cls, version: AnyVersion | Entry | Notice, at: str, what: What, detail: Mapping[str, str]) -> Event:
        """Return the event of an object version: with its key, version ID, ETag and size."""
        name = version.version_id
        return cls(
            key=version.key, at=at, what=what, version_id=name, etag=version.etag, size=version.size, detail=detail
        )


class Known(Struct, frozen=True, kw_only=True):
    """A recorded digest, with its source and the dates of its recording and its last verification."""

    digest: str
    source: Source
    recorded_at: str
    """Time at which the digest was recorded, ISO 8601 in UTC; "" if it is unknown."""
    verified_at: str | None
    """Time of the last verification, ISO 8601 in UTC; None if the digest was recorded and never verified."""
    bytes_read: int
    """Number of bytes that the auditor read to compute the digest; 0 for a digest that S3 computed."""
    damaged: bool = False
    """True if the digest is damaged: its seal (a hash of the row's fields) is wrong, and the key's history has no
    undamaged copy."""

    @property
    def checked_at(self) -> str:
        """Time at which the digest was last verified or recorded."""
        return max(self.recorded_at, self.verified_at or "")


class Version(Struct, frozen=True, kw_only=True):
    """An object version that the ledger knows, by version ID and ETag, with its recorded digests."""

    version_id: str
    """ID of the version; "null" if it is unknown."""
    etag: str
    size: int
    digests: Mapping[str, Known]
    """The recorded digests, by algorithm."""
    first_seen: str
    """Time at which the first digest of this version was recorded."""
    sequencer: str = ""
    """Sequencer of the notification that reported the creation of this version; "" if no notification did."""
    removed_at: str | None = None
    """Time at which this version was deleted for good; None if no notification reported such a deletion, or if the
    version was read again long after the deletion."""
    retired_at: str | None = None
    """Time at which a person retired this version or its key; None if nobody did, or if the version was read later."""

    @classmethod
    def of(
        cls, version_id: str, etag: str, size: int, digests: Mapping[str, Known], first_seen: str | None = None
    ) -> Version:
        """Make a Version. first_seen: time of its first digest; None to take the oldest time in `digests`."""
        seen = first_seen or min((one.recorded_at for one in digests.values()), default="")
        return cls(version_id=version_id, etag=etag, size=size, digests=dict(digests), first_seen=seen)


class Expectation(Struct, frozen=True):
    """An expected digest: one that a checksum manifest states for an object key. It holds for any version of the
    key.
    """

    key: str
    algorithm: str
    digest: str
    origin: str
    """Name of the manifest file."""
    imported_at: str
    size: int | None = None


class KeyRecord(Struct, frozen=True, kw_only=True):
    """The present state of one object key in the ledger: its versions, expected digests, deletion and retirement."""

    key: str
    versions: tuple[Version, ...]
    """The versions with recorded digests, the newest last. Sequencers give the order; versions without sequencers are
    in the order of their recording."""
    expectations: tuple[Expectation, ...] = ()
    deleted_at: str | None = None
    """Time at which the object under this key was deleted, or hidden by a delete marker; None if the object exists.

    The time comes from notifications. If a listing or a read long after the deletion shows the object, the object
    exists."""
    noticed_at: str | None = None
    """Time of the newest notification; None if there was none."""
    unrecorded: bool = False
    """True if a notification reported newer content of the key than the ledger has digests of."""
    damage: tuple[str, ...] = ()
    """Algorithm, ETag and version of each damaged row of this key. In `versions`, the copy in the key's history
    replaces the damaged digest; without such a copy, the digest is marked as damaged."""
    retired_at: str | None = None
    """Time at which a person retired the key or its last version; None if nobody did, or if the key was listed, created
    or read later."""


class Notice(Struct, frozen=True, kw_only=True):
    """A notification of S3 that the object under a key was created or deleted."""

    key: str
    sequencer: str
    """S3's sequencer, a hexadecimal text that orders the notifications of a key. To compare two, pad the shorter one
    with zeros on the right (S3 User Guide, notification-content-structure)."""
    deleted: bool
    """True if the notification reports a deletion."""
    at: str
    """Time of the notification, ISO 8601 in UTC."""
    version_id: str | None = None
    """ID of the created version, or of the delete marker that a deletion left; None if the notification names no
    version."""
    etag: str | None = None
    size: int | None = None


class KeyHistory(Protocol):
    """The part of a ledger that keeps the history of each object key. Events are added to a history, never changed or
    deleted.

    Raises LedgerError if the ledger cannot be used.
    """

    async def note(self, bucket: str, events: Sequence[Event]) -> None:
        """Append events to the histories of their keys. Four kinds of events also change the key's record.

        "verified" sets verified_at of a digest; `detail` names the algorithm, and version ID and ETag are those of a
        Version in the record. "deleted" with a version ID means that this version or delete marker was deleted for
        good. "listed" means that S3 listed an object under the key, whatever notifications said before. "retired" means
        that a person no longer expects the version to exist; without a version ID, that nobody expects the key and its
        expected digests.

        If the record has a later time for the same fact, the event changes only the history.
        """
        ...

    async def history(self, bucket: str, key: str) -> list[Event]:
        """Return all events of a key, in the order in which they were written."""
        ...

    async def arrived(self, bucket: str, notice: Notice) -> bool:
        """Record a notification of S3 in the key's history and, if it is the key's newest, in the key's record.

        Return False if the record has a newer notification of the key. Return True, and write nothing, if the record
        has this very notification already. Of two notifications, the one with the larger sequencer is newer; if one has
        no sequencer, the one with the later time is.
        """
        ...

    async def expect(self, bucket: str, expectations: Sequence[Expectation]) -> int:
        """Record expected digests, and return how many of them are new or differ from those in the ledger.

        A digest replaces an earlier one of the same key, algorithm and manifest; the key's history keeps both.
        """
        ...

    async def subject(self, bucket: str, key: str) -> KeyRecord | None:
        """Return the ledger's record of one key; None if the ledger does not know the key."""
        ...

    def subjects(self, bucket: str, prefix: str = "", start_after: str = "") -> AsyncGenerator[KeyRecord, None]:
        """Yield the records of all keys that begin with `prefix` and come after `start_after`, in the order of S3's
        listing (UTF-8 bytes).

        Memory is bounded. A caller that stops early must close the generator, which may have a file open.
        """
        ...


class Checked(Struct, frozen=True):
    """The result of the check of one row, or of one history line, for damage."""

    bucket: str
    key: str
    kind: Literal["row", "line"]
    state: Soundness
    words: str = ""
    """Words that describe the damage; "" if the row or line is not damaged."""


class Ledger(DigestStore, Leases, KeyHistory, Protocol):
    """A whole ledger: digests, leases and histories in one store."""

    def histories(self, bucket: str, prefix: str = "") -> AsyncGenerator[list[Event], None]:
        """Yield all events of all keys that begin with `prefix`, in lists, in bounded memory.

        Keys come in the order of S3's listing, the events of a key in the order in which they were written. A caller
        that stops early must close the generator, which may have a file open.
        """
        ...

    async def heal(self, bucket: str, keys: Sequence[str]) -> int:
        """Write each damaged row of these keys anew, if a sound line of the key's history has its digest, and return
        the number of such rows.

        A row without such a line stays damaged, and so does a row that another writer changes meanwhile. A repetition
        writes nothing.
        """
        ...

    def checked(self) -> AsyncGenerator[list[Checked], None]:
        """Check all rows and history lines of the ledger for damage: whether their seals are right, and whether rows
        and lines agree with each other.

        Yield the results in lists, in bounded memory. A caller that stops early must close the generator.
        """
        ...


class OrderedReader(Protocol):
    """Looks up the digests of one bucket's object versions, batch by batch, in the order of S3's listing.

    Raises errors.LedgerError if the ledger cannot be used. The call can then be repeated.
    """

    async def known(self, refs: Sequence[AnyVersion], algorithms: Sequence[str]) -> list[Mapping[str, str]]:
        """Return the recorded digests of each object version, in order, as DigestStore.known() does.

        Every digest in the answer was in the ledger at some time since the reader was made. A digest that was recorded
        since then may be missing. A batch out of order is answered too, but costs more.
        """
        ...

    async def close(self) -> None:
        """End the pass over the ledger, if one is under way. The reader can be used again."""
        ...


class PassChoice:
    """Chooses between a pass over the ledger and questions, batch by batch.

    A pass that has read many rows for few objects is not tried again for the next objects; their number doubles with
    each such pass, so that a ledger with many more objects than the listing is not passed over in vain.

    first: number of objects that are asked about before the first pass. pause: number of objects that are asked about
    after the first pass in vain. most: the limit up to which that number doubles.
    """

    def __init__(self, *, first: int, pause: int, most: int) -> None:
        self._left = first
        self._first_pause = self._pause = pause
        self._most = most

    def passes(self, objects: int) -> bool:
        """Return True to begin a pass with the next `objects` objects, False to ask about each of them."""
        if self._left <= 0:
            return True
        self._left -= objects
        return False

    def in_vain(self, answered: int) -> None:
        """Ask about the next objects: the pass has read too many rows. answered: number of objects it has answered."""
        self._pause = self._first_pause if answered >= self._pause else min(2 * self._pause, self._most)
        self._left = self._pause
