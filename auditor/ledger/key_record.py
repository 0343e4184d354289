"""The rows of one object key in a ledger, of whatever kind it is, the order of their notifications, and the record of
the key that is made from them by the same rule for every kind of ledger.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from auditor.ledger.base import AUDITOR, S3, Event, Expectation, KeyRecord, Notice, Source, Version
from auditor.ledger.matching import NULL
from auditor.s3.sequencer import newer, sort_key

SLACK: Final = timedelta(minutes=15)
"""Time after a deletion in which a read of the object does not prove that it still exists: the read may have begun
before the deletion, and the clocks of two machines may differ. AWS refuses requests whose clock is further off."""

NO_SLACK: Final = timedelta(0)
"""The slack that replaces SLACK after a person retired a key. A read or a listing at any later time then proves that an
object exists."""


class Mark(StrEnum):
    """A word that a row of the ledger has in place of an ETag. Such a row states a fact about a whole version or a
    whole key.
    """

    MARKER = "-marker"
    """The version is a delete marker."""
    REMOVED = "-removed"
    """The version or delete marker was deleted for good."""
    LISTED = "-listed"
    """S3 listed an object under the key. The row's version ID is NULL."""
    RETIRED = "-retired"
    """A person retired the version, or the whole key if the row's version ID is NULL."""


MARKS: Final = frozenset(Mark)


class NoticedVersion(Struct, frozen=True):
    """A row of the ledger about an object version: the newest notification of the version, or the fact that a Mark
    states.

    place: grows with each write of the ledger; 0 if a newer notification of the key came earlier. at: the Mark's time;
    "" for a notification.
    """

    sequencer: str
    place: int
    at: str = ""

    def replaced_by(self, sequencer: str, place: int) -> bool:
        """True if another notification, with this sequencer and place, is newer than this one.

        The larger sequencer is newer. If one of the two has no sequencer, the larger place is.
        """
        if self.sequencer and sequencer:
            return newer(sequencer, self.sequencer)
        return place > self.place


class Latest(Struct, frozen=True):
    """The newest notification of an object key."""

    sequencer: str
    deleted: bool
    at: str
    version_id: str | None


class KeyRows(Struct):
    """All rows of one object key in the ledger.

    versions: each object version with its place in the order of writes. noticed: the newest notification, or the Mark,
    by (version ID, ETag or Mark). latest: the key's newest notification.
    """

    versions: list[tuple[Version, int]] = field(default_factory=list)
    noticed: dict[tuple[str, str], NoticedVersion] = field(default_factory=dict)
    expectations: list[Expectation] = field(default_factory=list)
    latest: Latest | None = None
    damage: tuple[str, ...] = ()

    def record(self, key: str) -> KeyRecord:
        """Make the record of the object key."""
        state = _State(self)
        return KeyRecord(
            key=key,
            versions=tuple(state.versions()),
            expectations=tuple(state.expectations()),
            deleted_at=state.deleted_at(),
            retired_at=state.retired_at(),
            noticed_at=self.latest.at if self.latest else None,
            unrecorded=state.is_unrecorded(),
            damage=self.damage,
        )


def mark_of(event: Event) -> tuple[str, Mark] | None:
    """Return version ID and Mark of the row that this event writes in addition to its history line.

    Return None if the event writes only a history line.
    """
    if event.what == "deleted" and event.version_id:
        return event.version_id, Mark.REMOVED
    if event.what == "retired":
        return event.version_id or NULL, Mark.RETIRED
    return (NULL, Mark.LISTED) if event.what == "listed" else None


def is_seen_after(version: Version, at: str, slack: timedelta = SLACK) -> bool:
    """True if the version was recorded or verified more than `slack` after the time `at`."""
    return any(is_after(known.checked_at, at, slack) for known in version.digests.values())


def is_after(one: str, other: str, slack: timedelta = SLACK) -> bool:
    """True if the time `one` is more than `slack` after the time `other`; False if one of the texts is not a time."""
    try:
        return datetime.fromisoformat(one) - datetime.fromisoformat(other) > slack
    except (ValueError, TypeError):  # no auditor writes such a time, so it proves nothing
        return False


def is_older(notice: Notice, latest: Latest | None) -> bool:
    """True if the notification is older than `latest`, by their sequencers or, if one has none, by their times."""
    if latest is None:
        return False
    if latest.sequencer and notice.sequencer:
        return newer(latest.sequencer, notice.sequencer)
    return latest.at > notice.at


def is_same(notice: Notice, latest: Latest | None) -> bool:
    """True if the notification is the one in `latest`, received a second time."""
    if latest is None or latest.deleted != notice.deleted:
        return False
    if latest.sequencer and notice.sequencer:
        return sort_key(latest.sequencer) == sort_key(notice.sequencer)
    return latest.sequencer == notice.sequencer and latest.at == notice.at


def source_of(text: str | None) -> Source:
    return S3 if text == S3 else AUDITOR


_Name = tuple[str, str]
"""Version ID and ETag of an object version, or version ID and Mark."""


class _State:
    """The state of an object key, derived from the key's rows in the ledger."""

    def __init__(self, rows: KeyRows) -> None:
        self._rows = rows
        self._names = {(version.version_id, version.etag) for version, _ in rows.versions}
        self._recorded = {version_id for version_id, _ in self._names} - {NULL}
        self._removed = self._removals()
        self._order = self._ranks()

    def _removals(self) -> dict[str, NoticedVersion]:
        """Return by version ID the deletions of all versions and delete markers that were deleted for good.

        Leave out a version that was recorded or verified long (SLACK) after its deletion.
        """
        latest = self._rows.latest
        found = {name: notice for (name, etag), notice in self._rows.noticed.items() if etag == Mark.REMOVED}
        if latest is not None and latest.version_id is not None and self._deletes_version(latest):
            found[latest.version_id] = NoticedVersion(latest.sequencer, 0, latest.at)
        for version, _ in self._rows.versions:
            notice = found.get(version.version_id)
            if notice is not None and is_seen_after(version, notice.at):
                del found[version.version_id]
        return found

    def _deletes_version(self, latest: Latest) -> bool:
        """True if the notification reports the deletion of a recorded version, not a new delete marker."""
        return latest.deleted and latest.version_id in self._recorded

    def _ranks(self) -> dict[_Name, tuple[int, str]]:
        """Return a rank for each version that was recorded or that a notification named. A newer version has a higher
        rank.

        Two versions with notifications are ranked by their sequencers. A version without a notification is ranked by
        its place in the order of writes. That is less sure, because the writers' clocks may differ.
        """
        ranks = {(version.version_id, version.etag): (place, "") for version, place in self._rows.versions}
        created = [(name, notice) for name, notice in self._rows.noticed.items() if name[1] not in MARKS]
        place = 0
        for name, notice in sorted(created, key=lambda one: (sort_key(one[1].sequencer), one[1].place)):
            place = max(place, notice.place)
            ranks[name] = place, sort_key(notice.sequencer)
        return ranks

    def _sequencer(self, name: _Name) -> str:
        notice = self._rows.noticed.get(name)
        return notice.sequencer if notice else ""

    def _is_removed(self, name: _Name) -> bool:
        return self._was_removed(name[0], self._sequencer(name))

    def _was_removed(self, version_id: str | None, sequencer: str) -> bool:
        """True if this version was deleted for good.

        A key can have several objects with the version ID NULL, one after the other. For this ID, the answer is False
        if the object, by its `sequencer`, was created after the deletion.
        """
        notice = None if version_id is None else self._removed.get(version_id)
        return notice is not None and (version_id != NULL or not newer(sequencer, notice.sequencer))

    def versions(self) -> Iterator[Version]:
        """Yield the recorded versions, the newest last, each with the times of its deletion and its retirement."""
        placed = []
        for version, _ in self._rows.versions:
            name = version.version_id, version.etag
            at = self._removed[name[0]].at if self._is_removed(name) else None
            rank = (*self._order[name], version.first_seen, *name)
            retired = self._version_retired_at(version)
            placed.append((rank, replace(version, sequencer=self._sequencer(name), removed_at=at, retired_at=retired)))
        return (version for _, version in sorted(placed, key=lambda one: one[0]))

    def expectations(self) -> list[Expectation]:
        """Return the expected digests, without the ones that were imported before a person retired the key."""
        retired = self._mark(NULL, Mark.RETIRED)
        left = [one for one in self._rows.expectations if retired is None or one.imported_at > retired]
        return sorted(left, key=lambda one: (one.algorithm, one.origin))

    def _mark(self, version_id: str, mark: Mark) -> str | None:
        notice = self._rows.noticed.get((version_id, mark))
        return notice.at if notice else None

    def _version_retired_at(self, version: Version) -> str | None:
        """Return when a person retired the version or its key; None if nobody did, or if the version was recorded or
        verified later.
        """
        at = max(self._mark(name, Mark.RETIRED) or "" for name in (version.version_id, NULL))
        return at if at and not is_seen_after(version, at, NO_SLACK) else None

    def retired_at(self) -> str | None:
        """Return when a person retired the key or the last of its versions.

        Return None if nobody did, if a version is left that was neither retired nor deleted, or if the key was listed,
        created or read later.
        """
        versions = [self._version_retired_at(version) for version, _ in self._rows.versions]
        at = self._mark(NULL, Mark.RETIRED) or ("" if self.is_unrecorded() else max(filter(None, versions), default=""))
        latest = self._rows.latest
        sights = [self._mark(NULL, Mark.LISTED), latest.at if latest and not latest.deleted else None]
        gone = all(
            retired or self._is_removed((version.version_id, version.etag))
            for retired, (version, _) in zip(versions, self._rows.versions, strict=True)
        )
        if not at or not gone or any(sight and is_after(sight, at, NO_SLACK) for sight in sights):
            return None
        return at

    def is_unrecorded(self) -> bool:
        """True if the ledger has no digest of the key's newest version. Versions that were deleted for good do not
        count.
        """
        left = [name for name in self._order if not self._is_removed(name)]
        if not left:
            return False
        version_id, etag = max(left, key=lambda name: self._order[name])
        return not self._names & {(version_id, etag), (NULL, etag)}

    def deleted_at(self) -> str | None:
        """Return when the object under the key was deleted or hidden; None if it exists.

        If the object was listed or read long after the deletion, it exists: a later notification was lost.
        """
        at = self._told_at()
        listed = self._mark(NULL, Mark.LISTED)
        if at is None or (listed is not None and is_after(listed, at)):
            return None
        # An older version can be read by its version_id after the deletion.
        unversioned = [version for version, _ in self._rows.versions if version.version_id == NULL]
        return None if any(is_seen_after(version, at) for version in unversioned) else at

    def _told_at(self) -> str | None:
        """Return when the object under the key was deleted or hidden, by the notifications alone; None if they report
        no deletion.

        The newest version or delete marker that was not deleted for good decides. If all are deleted for good, the key
        is deleted once this holds for all its recorded versions.
        """
        latest = self._rows.latest
        if latest is not None and self._stands(latest):
            return latest.at if latest.deleted else None
        left = [
            (sort_key(notice.sequencer), name[1] == Mark.MARKER, notice.at)
            for name, notice in self._rows.noticed.items()
            if self._creates(name) and not self._is_removed(name)
        ]
        if left:
            _, hides, at = max(left)
            return at if hides else None
        if not self._removed or not all(map(self._is_removed, self._names)):
            return None
        return max(notice.at for notice in self._removed.values())

    def _stands(self, latest: Latest) -> bool:
        return not self._deletes_version(latest) and not self._was_removed(latest.version_id, latest.sequencer)

    def _creates(self, name: _Name) -> bool:
        """True if a row with this name states that a version, or a delete marker, was created."""
        if name[1] == Mark.MARKER:
            return name[0] not in self._recorded
        return name[1] not in MARKS
