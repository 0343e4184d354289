"""The rows of one object key in a ledger, of whatever kind it is, and the order of their notifications."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from auditor.ledger.base import AUDITOR, S3, Event, Expectation, Known, Notice, Source, Version
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
    return any(
        is_after(max(known.recorded_at, known.verified_at or ""), at, slack) for known in version.digests.values()
    )


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


def version_of(
    version_id: str, etag: str, size: int, digests: Mapping[str, Known], first_seen: str | None = None
) -> Version:
    """Make a Version.

    first_seen: time of its first digest; None to take the oldest time in `digests`.
    """
    seen = first_seen or min((one.recorded_at for one in digests.values()), default="")
    return Version(version_id=version_id, etag=etag, size=size, digests=dict(digests), first_seen=seen)
