"""Seals of the ledger: hashes over the fields of a row or a history line, which show damage and careless edits.

A seal has no secret key: whoever can write to the ledger and knows this module can forge one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.ledger.base import DAMAGED, SOUND, Checked, Event, HistoryEntry, Known, Version
from auditor.ledger.key_rows import KeyRows, source_of
from auditor.ledger.matching import NULL

_LENGTH: Final = 32
"""Number of hexadecimal digits of a seal, 128 bits of SHA-256: enough to show every accidental damage, and small enough
for a DynamoDB item."""
_ENCODE: Final = json.JSONEncoder(separators=(",", ":")).encode
"""Writes the sealed fields. json.dumps() would make an encoder for each of the many seals of a ledger."""
_STRING: Final = json.encoder.encode_basestring_ascii
"""Writes one text as JSON."""


def line_of(bucket: str, event: Event, seal: str | None) -> HistoryEntry:
    """Return the event of a stored history line, with the state of the line. seal: the line's; None if it has none."""
    return HistoryEntry(event, SOUND if seal == line_seal(bucket, event) else DAMAGED)


def line_seal(bucket: str, event: Event) -> str:
    """Return the seal that a history line with this event must have."""
    size, detail = event.size, dict(sorted(event.detail.items()))
    fields = ("line", bucket, event.key, event.at, event.what, event.version_id, event.etag, size, detail)
    return _sealed(_ENCODE(fields))


def row_seal(bucket: str, key: str, *fields: str | int | None) -> str:
    """Return the seal that the row of a digest must have.

    fields: all fields of the row but bucket, key and seal, in an order that each kind of ledger chooses.
    """
    # The same text as that of _ENCODE, in two thirds of the time: an audit checks the seal of each known object.
    written = [
        _STRING(one) if isinstance(one, str) else "null" if one is None else repr(one)
        for one in ("row", bucket, key, *fields)
    ]
    return _sealed(f"[{','.join(written)}]")


def _sealed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


class _Digest(Struct, frozen=True):
    """One digest of a key, with its algorithm and its object version.

    version: a Version that has only this digest. place: number that orders the writes of the key, as in KeyRows.
    """

    version: Version
    algorithm: str
    place: int

    @property
    def known(self) -> Known:
        return self.version.digests[self.algorithm]

    @property
    def name(self) -> tuple[str, str, str]:
        return self.version.version_id, self.version.etag, self.algorithm


def sound_events(lines: Iterable[HistoryEntry]) -> list[Event]:
    """Return the events of the undamaged lines."""
    return [line.event for line in lines if line.seal == SOUND]


def mend(rows: KeyRows, lines: Iterable[HistoryEntry]) -> None:
    """Replace each damaged digest in `rows` by the copy in the key's history, and list the damage in `rows.damage`.

    lines: the key's history lines. A digest without a copy stays in `rows`, marked as damaged.
    If the version ID, ETag or algorithm of a row is damaged, no event names that row. Its digest is then replaced by
    the digest of an event that fits no other row.
    """
    found = [_Digest(_only(one, name), name, place) for one, place in rows.versions for name in one.digests]
    rows.damage = tuple(" ".join(one.name[::-1]) for one in found if one.known.damaged)
    proven = _proven(sound_events(lines))
    spare = {name: one for name, one in proven.items() if name not in {digest.name for digest in found}}
    mended = [_mended(one, proven, spare) if one.known.damaged else one for one in found]
    versions: dict[tuple[str, str, int], tuple[Version, int]] = {}
    for one in mended:
        identity = (one.version.version_id, one.version.etag, one.version.size)
        before, place = versions.get(identity, (one.version, one.place))
        versions[identity] = replace(before, digests={**before.digests, one.algorithm: one.known}), place
    rows.versions = list(versions.values())


def healed(rows: Sequence[tuple[Version, str]], lines: Iterable[HistoryEntry]) -> list[tuple[int, Version, str]]:
    """Return for each damaged row of one key that a sound history line stands for: its place in `rows`, and the version
    and algorithm that the row must have.

    rows: each row as a version with one digest, and the algorithm. lines: the key's history lines. The digest of a
    returned version has the time of its last verification in the history.
    """
    events = sound_events(lines)
    proven, digests = _proven(events), [_Digest(version, algorithm, 0) for version, algorithm in rows]
    names = {one.name for one in digests}
    spare = {name: line for name, line in proven.items() if name not in names}
    found = []
    for number, damaged in enumerate(digests):
        if damaged.known.damaged and (one := _mended(damaged, proven, spare)) is not damaged:
            known = replace(one.known, verified_at=_last_verified(events, one))
            found.append((number, replace(one.version, digests={one.algorithm: known}), one.algorithm))
    return found


def _last_verified(events: Iterable[Event], digest: _Digest) -> str | None:
    """Return the time of the last "verified" event of this digest; None if there is none."""
    wanted = (*digest.name, digest.known.digest)
    verified = (
        (event.at, (event.version_id or NULL, event.etag, event.detail.get("algorithm"), event.detail.get("digest")))
        for event in events
        if event.what == "verified"
    )
    return max((at for at, name in verified if name == wanted), default=None)


def _only(version: Version, algorithm: str) -> Version:
    return replace(version, digests={algorithm: version.digests[algorithm]})


def _mended(damaged: _Digest, proven: _Proven, spare: _Proven) -> _Digest:
    """Return the copy of a damaged digest in the key's history; the damaged digest itself if the history has no copy.

    proven: the "recorded" events. spare: the "recorded" events that fit no row; an event that is used is removed.
    """
    own = proven.get(damaged.name)
    alike = (name for name in spare if name[2] == damaged.algorithm)
    name = next(alike, None) or next(iter(spare), None)
    line = own or (spare.pop(name) if name else None)
    if line is None:
        return damaged
    return _Digest(version_of_line(line), line.detail["algorithm"], damaged.place)


_Proven = dict[tuple[str, str, str], Event]


def _proven(lines: Iterable[Event]) -> _Proven:
    """Return the "recorded" events by version ID, ETag and algorithm, without events that contradict each other."""
    found: _Proven = {}
    refuted = set()
    for line in lines:
        if line.what != "recorded" or not {"algorithm", "digest"} <= line.detail.keys():
            continue
        name = (line.version_id or NULL, line.etag or "", line.detail["algorithm"])
        before = found.setdefault(name, line)
        if (before.size, before.detail["digest"]) != (line.size, line.detail["digest"]):
            refuted.add(name)
        found[name] = line
    return {name: line for name, line in found.items() if name not in refuted}


def version_of_line(line: Event) -> Version:
    """Return the object version, with one digest, that a "recorded" event names."""
    read = line.detail.get("bytes_read", "")
    known = Known(
        digest=line.detail["digest"],
        source=source_of(line.detail.get("source")),
        recorded_at=line.at,
        verified_at=None,
        bytes_read=int(read) if read.isdecimal() else line.size or 0,
    )
    return Version(
        version_id=line.version_id or NULL,
        etag=line.etag or "",
        size=line.size or 0,
        digests={line.detail["algorithm"]: known},
        first_seen=line.at,
    )


def contradicted(lines: Sequence[Event], version: Version, algorithm: str) -> str | None:
    """Return the digest that the history has of this version, if it differs from the row's in digest or size.

    Return None if the two agree, or if the history has no such digest.
    """
    told = _proven(lines).get((version.version_id, version.etag, algorithm))
    if told is None or (told.detail["digest"], told.size) == (version.digests[algorithm].digest, version.size):
        return None
    return told.detail["digest"]


def check_key(
    bucket: str, key: str, rows: Iterable[tuple[Version, str]], lines: Sequence[HistoryEntry]
) -> list[Checked]:
    """Check the rows and history lines of one key for damage: whether their seals are right, and whether rows and lines
    agree with each other.

    rows: each row as a version with one or more digests, and the algorithm of the row's.
    """
    events = sound_events(lines)
    told, verified = _proven(events), {event.at for event in events if event.what == "verified"}
    found, names = [], set()
    for version, algorithm in rows:
        known, state = version.digests[algorithm], SOUND
        name = (version.version_id, version.etag, algorithm)
        names.add(name)
        words = f"{algorithm} of version {name[0]}, ETag {name[1]}: "
        if known.damaged:
            state, words = DAMAGED, f"{words}the seal does not hold"
        elif contradicted(events, version, algorithm) is not None:
            state, words = DAMAGED, f"{words}the history has another digest or size"
        elif name not in told:
            state, words = DAMAGED, f"{words}its line is missing from the history"
        elif known.verified_at is not None and known.verified_at not in verified:
            state, words = DAMAGED, f"{words}the history has no verification at {known.verified_at}"
        found.append(Checked(bucket, key, "row", state, words if state == DAMAGED else ""))
    for line in lines:
        state, words = line.seal, f"{line.event.what} at {line.event.at}: "
        if state == DAMAGED:
            words = f"{words}the seal does not hold"
        elif line.event.what == "recorded" and not names.issuperset(_proven([line.event])):
            state, words = DAMAGED, f"{words}the digest's row is missing"
        found.append(Checked(bucket, key, "line", state, words if state == DAMAGED else ""))
    return found
