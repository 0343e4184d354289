"""From what a ledger keeps of one key to the Subject that it is: one rule for every kind of ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from auditor.ledger.base import AUDITOR, S3, Expectation, KeyRecord, Known, Notice, Source, Version
from auditor.ledger.matching import NULL
from auditor.s3.sequencer import newer, sort_key

SLACK: Final = timedelta(minutes=15)
"""How long a read goes on, at most, that began before the object was deleted, and how far two clocks are apart."""


@dataclass(frozen=True, slots=True)
class NoticedVersion:
    """A notification named this version. place: grows with each write of the ledger; 0 for one that came too late."""

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
    """What was read of one key. versions: each with its place, as above. told: by version_id and etag."""

    versions: list[tuple[Version, int]] = field(default_factory=list)
    told: dict[tuple[str, str], NoticedVersion] = field(default_factory=dict)
    expectations: list[Expectation] = field(default_factory=list)
    latest: Latest | None = None


def subject_of(key: str, parts: KeyRows) -> KeyRecord:
    """Versions are ordered by the notifications that told of them, others by when they were recorded."""
    placed = []
    for version, place in parts.versions:
        told = parts.told.get((version.version_id, version.etag), NoticedVersion("", place))
        order = (told.place, sort_key(told.sequencer), version.first_seen, version.version_id, version.etag)
        placed.append((order, replace(version, sequencer=told.sequencer)))
    placed.sort(key=lambda one: one[0])
    return KeyRecord(
        key=key,
        versions=tuple(version for _, version in placed),
        expectations=tuple(sorted(parts.expectations, key=lambda one: (one.algorithm, one.origin))),
        deleted_at=_deleted_at(parts),
    )


def _deleted_at(parts: KeyRows) -> str | None:
    """A deletion that names one of several known versions took that version alone: the key may be there still.

    One before the key was looked at under its bare name is not the last word: a newer notification was lost.
    """
    latest = parts.latest
    if latest is None or not latest.deleted or _seen_after(parts, latest.at):
        return None
    known = {version.version_id for version, _ in parts.versions}
    return None if latest.version_id in known - {NULL} and len(known) > 1 else latest.at


def _seen_after(parts: KeyRows, at: str) -> bool:
    looks = [
        max(known.recorded_at, known.verified_at or "")
        for version, _ in parts.versions
        if version.version_id == NULL  # an older version can be read by its name when the key is long deleted
        for known in version.digests.values()
    ]
    try:
        return bool(looks) and (datetime.fromisoformat(max(looks)) - datetime.fromisoformat(at)) > SLACK
    except (ValueError, TypeError):  # times that no auditor wrote prove nothing
        return False


def is_older(notice: Notice, latest: Latest | None) -> bool:
    """Whether the notice tells of an earlier time than the newest one; by its own time where a sequencer lacks."""
    if latest is None:
        return False
    if latest.sequencer and notice.sequencer:
        return newer(latest.sequencer, notice.sequencer)
    return latest.at > notice.at


def is_same(notice: Notice, latest: Latest | None) -> bool:
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
    """first_seen None: an earlier version of this program wrote it, and its digests tell."""
    seen = first_seen or min((one.recorded_at for one in digests.values()), default="")
    return Version(version_id=version_id, etag=etag, size=size, digests=dict(digests), first_seen=seen)
