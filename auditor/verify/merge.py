"""Merge the listing of a bucket and the ledger's records by object key.

Both come in key order, so neither has to be in memory as a whole.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Set
from contextlib import aclosing
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.errors import LedgerError
from auditor.ledger.base import Event, KeyRecord, Known, Version
from auditor.ledger.key_record import NO_SLACK, SLACK, is_after
from auditor.ledger.matching import NULL
from auditor.model.dates import now_in_utc
from auditor.model.object import ObjectRef
from auditor.model.target import Target
from auditor.s3.listing import Listed
from auditor.text import visible

MOST: Final = 1000
"""Number of pairs after which merged() yields a list while it adds keys that only the ledger has. Without this limit a
list could grow endlessly, because any number of such keys may lie between two listed keys."""


class Pair(Struct, frozen=True):
    """An object version of the listing, of the ledger, or of both, together with the ledger's record of its key."""

    key: str
    ref: ObjectRef | None
    """The object's entry in the listing; None if the object is not listed, or if the listing has a delete marker in its
    place."""
    subject: KeyRecord | None
    """The ledger's record of the key; None if the ledger does not know the key."""
    absent: bool = False
    """True if the ledger has the object and the listing lacks it. The object is `version`; or the whole key, if
    `version` is None."""
    version: Version | None = None
    replaced_by: ObjectRef | None = None
    """The key's current object, if it may have overwritten the bytes of `version`; None otherwise. Such a `version` has
    no version ID."""
    delete_markers: int = 0
    """Number of delete markers that the listing has in this pair's place."""
    listed_at: str = ""
    """Time just before the request for the page of the listing, ISO 8601 in UTC; "" if the object is not listed."""

    @property
    def is_told(self) -> bool:
        """True if the ledger's record says that the pair's version was deleted. If the pair has no version, the same is
        asked of its key.
        """
        if self.version is not None:
            return self.version.removed_at is not None
        return self.subject is not None and self.subject.deleted_at is not None

    @property
    def is_settled(self) -> bool:
        """True if the ledger's record says that the pair's version was deleted or retired. If the pair has no version,
        the same is asked of its key.
        """
        known = self.version or self.subject
        return self.is_told or (known is not None and known.retired_at is not None)

    def listed_again(self) -> Event | None:
        """Return a "listed" event if S3 lists an object that is deleted or retired in the ledger; None otherwise.

        A deletion counts only if it happened long (SLACK) before the listing.
        """
        ref, subject = self.ref, self.subject
        if ref is None or not ref.is_latest or subject is None:
            return None
        told = {"deleted": (subject.deleted_at, SLACK), "retired": (subject.retired_at, NO_SLACK)}
        belied = {name: at for name, (at, slack) in told.items() if at and is_after(self.listed_at, at, slack)}
        return Event.of(ref, self.listed_at, "listed", belied) if belied else None


async def merged(
    pages: AsyncGenerator[list[Listed], None],
    subjects: AsyncGenerator[KeyRecord, None],
    target: Target,
    now: Callable[[], str] = now_in_utc,
) -> AsyncGenerator[list[Pair], None]:
    """Yield a Pair for each object that the listing or the ledger has, in key order, in lists of about a page of the
    listing.

    Raises the errors of the listing and of the ledger. now: returns the present time (ISO 8601 in UTC).
    """
    async with aclosing(pages), aclosing(subjects):
        ledger = _LedgerRecords(subjects, target)
        key = _ListedKey("", None)
        asked_at = now()
        async for page in pages:
            pairs: list[Pair] = []
            for step in page:
                if step.key != key.name:
                    pairs += key.end(target.versions)
                    while (subject := await ledger.before(step.key)) is not None:
                        pairs += _absent(subject, target.versions)
                        if len(pairs) >= MOST:
                            yield pairs
                            pairs = []
                    key = _ListedKey(step.key, await ledger.at(step.key))
                pairs.append(key.step(step, asked_at))
            yield pairs
            asked_at = now()
        pairs = list(key.end(target.versions))
        while (subject := await ledger.before(None)) is not None:
            pairs += _absent(subject, target.versions)
            if len(pairs) >= MOST:
                yield pairs
                pairs = []
        yield pairs


class _ListedKey:
    """The key that the listing has reached, with the versions of this key in the ledger that the listing has not shown
    yet.
    """

    def __init__(self, name: str, subject: KeyRecord | None) -> None:
        self.name = name
        self._subject = subject
        self._awaited = {version.version_id: version for version in _real_versions(subject)}
        self._etags: set[str] = set()
        self._current: ObjectRef | None = None

    def step(self, step: Listed, asked_at: str) -> Pair:
        ref = step.ref
        if ref is not None:
            self._etags.add(ref.etag)
            self._current = ref if ref.is_latest else self._current
            self._awaited.pop(ref.version_id or NULL, None)
        listed_at = asked_at if ref is not None else ""
        return Pair(step.key, ref, self._subject, delete_markers=step.delete_markers, listed_at=listed_at)

    def end(self, versions: bool) -> Iterator[Pair]:
        """Yield a Pair for each version of the key that the ledger has and the listing lacks, after the key's last
        listed version.

        versions: True if the run lists all versions.
        """
        if self._subject is None:
            return
        if not self._etags:  # the listing has delete markers only
            yield from _absent(self._subject, versions)
            return
        for version in self._awaited.values() if versions else ():
            yield Pair(self.name, None, self._subject, absent=True, version=version)
        if self._current is not None:
            for version in replaced(self._subject, self._current, self._etags):
                yield Pair(self.name, None, self._subject, absent=True, version=version, replaced_by=self._current)
        elif self._subject.expectations:
            # A manifest expects a current version, but the current version is a delete marker.
            yield Pair(self.name, None, replace(self._subject, versions=()), absent=True)


def replaced(subject: KeyRecord, current: ObjectRef, listed: Set[str]) -> Iterator[Version]:
    """Yield the versions in the ledger, without a version ID, whose bytes are no longer under the key, as far as ETags
    and digests show.

    current: the key's current object, which may have the same bytes under another ETag. listed: the ETags of all listed
    versions of the key.
    """
    now = [one.digests for one in subject.versions if one.etag == current.etag]
    for version in subject.versions:
        if version.version_id != NULL or not version.digests or version.etag in listed:
            continue
        if version.removed_at is not None or version.retired_at is not None:
            continue
        if not any(_share_a_digest(version.digests, digests) for digests in now):
            yield version


def _share_a_digest(one: Mapping[str, Known], other: Mapping[str, Known]) -> bool:
    return any(name in other and other[name].digest.lower() == known.digest.lower() for name, known in one.items())


def _absent(subject: KeyRecord, versions: bool) -> Iterator[Pair]:
    """Yield the Pair of a key that is not listed. If the run lists versions, yield instead a Pair for each recorded
    version that has a version ID.
    """
    real: list[Version | None] = [*_real_versions(subject)] if versions else []
    for version in real or [None]:
        yield Pair(subject.key, None, subject, absent=True, version=version)


def _real_versions(subject: KeyRecord | None) -> Iterator[Version]:
    """Yield the key's versions in the ledger that have a version ID and digests."""
    found = {} if subject is None else {one.version_id: one for one in subject.versions if one.digests}
    return (version for name, version in found.items() if name != NULL)


class _LedgerRecords:
    """Reads the ledger's records of the target's keys, in key order, always one record ahead of the caller."""

    def __init__(self, subjects: AsyncIterator[KeyRecord], target: Target) -> None:
        self._subjects = subjects
        self._target = target
        self._next: KeyRecord | None = None
        self._last: str | None = None
        self._ended = False

    async def before(self, key: str | None) -> KeyRecord | None:
        """Return the next record and move on, if the record's key comes before `key`, or if `key` is None. Otherwise
        return None and stay.
        """
        subject = await self._peek()
        if subject is None or (key is not None and subject.key >= key):
            return None
        self._next = None
        return subject

    async def at(self, key: str) -> KeyRecord | None:
        """Return the next record and move on, if it is the record of this key. Otherwise return None and stay."""
        subject = await self._peek()
        if subject is None or subject.key != key:
            return None
        self._next = None
        return subject

    async def _peek(self) -> KeyRecord | None:
        while self._next is None and not self._ended:
            subject = await anext(self._subjects, None)
            if subject is None or self._target.beyond(subject.key):
                self._ended = True
                break
            if self._last is not None and subject.key <= self._last:
                raise LedgerError(
                    f"the ledger does not list its keys in order ({visible(subject.key)[:100]}): nothing can be"
                    " compared with it"
                )
            self._last = subject.key
            if self._target.covers(subject.key):
                self._next = subject
        return self._next
