"""Make a key's record from the ledger's rows, by the same rule for every kind of ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from auditor.ledger.base import AUDITOR, S3, Expectation, KeyRecord, Known, Notice, Source, Version
from auditor.ledger.matching import NULL
from auditor.s3.sequencer import newer, sort_key

SLACK: Final = timedelta(minutes=15)
"""Duration after a deletion in which a read does not prove that the object exists: the read may have begun before the
deletion, and two clocks may differ."""


@dataclass(frozen=True, slots=True)
class NoticedVersion:
    """The notification that named a version. place: grows with each write of the ledger; 0 if the notification came too
    late.
    """

    sequencer: str
    place: int


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest notification of a key."""

    sequencer: str
    deleted: bool
    at: str
    version_id: str | None


@dataclass(slots=True)
class KeyRows:
    """The ledger's rows of one key. versions: each with its place, as in NoticedVersion. noticed: by version_id and
    etag.
    """

    versions: list[tuple[Version, int]] = field(default_factory=list)
    noticed: dict[tuple[str, str], NoticedVersion] = field(default_factory=dict)
    expectations: list[Expectation] = field(default_factory=list)
    latest: Latest | None = None


def key_record_of(key: str, rows: KeyRows) -> KeyRecord:
    """Return the key's record. Versions are in the order of their notifications, or else in the order of their
    recording.
    """
    placed = []
    for version, place in rows.versions:
        notice = rows.noticed.get((version.version_id, version.etag), NoticedVersion("", place))
        order = (notice.place, sort_key(notice.sequencer), version.first_seen, version.version_id, version.etag)
        placed.append((order, replace(version, sequencer=notice.sequencer)))
    placed.sort(key=lambda one: one[0])
    return KeyRecord(
        key=key,
        versions=tuple(version for _, version in placed),
        expectations=tuple(sorted(rows.expectations, key=lambda one: (one.algorithm, one.origin))),
        deleted_at=_deleted_at(rows),
    )


def _deleted_at(rows: KeyRows) -> str | None:
    """Return the time of the key's deletion; None if the key exists.

    The deletion of one of several recorded versions leaves the key. If the current object was read long after the
    deletion, a newer notification was lost, and the key exists.
    """
    latest = rows.latest
    if latest is None or not latest.deleted or _seen_after(rows, latest.at):
        return None
    known = {version.version_id for version, _ in rows.versions}
    return None if latest.version_id in known - {NULL} and len(known) > 1 else latest.at


def _seen_after(rows: KeyRows, at: str) -> bool:
    """True if the object without a version was read more than SLACK after the time `at`."""
    reads = [
        max(known.recorded_at, known.verified_at or "")
        for version, _ in rows.versions
        if version.version_id == NULL  # an older version can be read by its version_id after the deletion
        for known in version.digests.values()
    ]
    try:
        return bool(reads) and (datetime.fromisoformat(max(reads)) - datetime.fromisoformat(at)) > SLACK
    except (ValueError, TypeError):  # no auditor writes such a time, so it proves nothing
        return False


def is_older(notice: Notice, latest: Latest | None) -> bool:
    """True if the notice is older than the newest one: by sequencer, or by time if one of them has no sequencer."""
    if latest is None:
        return False
    if latest.sequencer and notice.sequencer:
        return newer(latest.sequencer, notice.sequencer)
    return latest.at > notice.at


def is_same(notice: Notice, latest: Latest | None) -> bool:
    """True if the notice is the newest one again."""
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
    """Return a version. first_seen: None if an earlier version of this program wrote it; its oldest digest then gives
    the time.
    """
    seen = first_seen or min((one.recorded_at for one in digests.values()), default="")
    return Version(version_id=version_id, etag=etag, size=size, digests=dict(digests), first_seen=seen)
