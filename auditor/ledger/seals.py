"""Seals of the ledger: hashes over the fields of a row or a history line, which show damage and careless edits.

A seal has no secret key: whoever can write to the ledger and knows this module can forge one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from auditor.ledger.base import DAMAGED, SOUND, Checked, Event, Known, Version
from auditor.ledger.key_record import KeyRows, source_of
from auditor.ledger.matching import NULL

_LENGTH: Final = 32
"""Number of hexadecimal digits of a seal, 128 bits of SHA-256: enough to show every accidental damage, and small enough
for a DynamoDB item."""
_ENCODE: Final = json.JSONEncoder(separators=(",", ":")).encode
"""Writes the sealed fields. json.dumps() would make an encoder for each of the many seals of a ledger."""
_STRING: Final = json.encoder.encode_basestring_ascii
"""Writes one text as JSON."""


def judged_line(bucket: str, event: Event, seal: str | None) -> Event:
    """Return the event of a stored history line, with the state of the line. seal: the line's; None if it has none."""
    return event if seal == line_seal(bucket, event) else replace(event, seal=DAMAGED)


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


def single_digests(version: Version) -> list[Version]:
    """Return the version once for each of its digests, each time with this digest alone."""
    return [replace(version, digests={name: known}) for name, known in version.digests.items()]


def mend(rows: KeyRows, lines: Iterable[Event]) -> None:
    """Replace each damaged digest in `rows` by the copy in the key's history, and list the damage in `rows.damage`.

    lines: the key's history. A digest without a copy stays in `rows`, marked as damaged.
    """
    placed = [(one, place) for version, place in rows.versions for one in single_digests(version)]
    found = [one for one, _ in placed]
    damaged = [(name, one) for one in found for name, known in one.digests.items() if known.damaged]
    rows.damage = tuple(f"{name} {one.etag} {one.version_id}" for name, one in damaged)
    for number, version in healed(found, lines):
        found[number] = version
    versions: dict[tuple[str, str, int], tuple[Version, int]] = {}
    for one, (_, place) in zip(found, placed, strict=True):
        identity = (one.version_id, one.etag, one.size)
        before, first = versions.get(identity, (one, place))
        versions[identity] = replace(before, digests={**before.digests, **one.digests}), first
    rows.versions = list(versions.values())


def healed(rows: Sequence[Version], lines: Iterable[Event]) -> list[tuple[int, Version]]:
    """Return for each damaged row of one key that a sound history line stands for: its place in `rows`, and the version
    that the row must have.

    rows: each row as a version with one digest. lines: the key's history. If the version ID, ETag or algorithm of
    a row is damaged, no line names that row: a line that fits no other row then stands for it. The digest of a returned
    version has the time of its last verification in the history.
    """
    events = [line for line in lines if line.seal == SOUND]
    proven, names = _proven(events), [_name(row, algorithm) for row in rows for algorithm in row.digests]
    spare = {name: line for name, line in proven.items() if name not in names}
    found = []
    for number, (row, name) in enumerate(zip(rows, names, strict=True)):
        if row.digests[name[2]].damaged and (line := proven.get(name) or _spare_line(spare, name[2])):
            found.append((number, version_of_line(line, _last_verified(events, line))))
    return found


def _name(version: Version, algorithm: str) -> tuple[str, str, str]:
    return version.version_id, version.etag, algorithm


def _last_verified(events: Iterable[Event], line: Event) -> str | None:
    """Return the time of the last "verified" event of the digest of this "recorded" event; None if there is none."""

    def digest_of(event: Event) -> tuple[str | None, ...]:
        return event.version_id or NULL, event.etag, event.detail.get("algorithm"), event.detail.get("digest")

    times = (one.at for one in events if one.what == "verified" and digest_of(one) == digest_of(line))
    return max(times, default=None)


def _spare_line(spare: _Proven, algorithm: str) -> Event | None:
    """Take a line out of `spare`, if possible one of this algorithm, and return it; None if there is none."""
    alike = (name for name in spare if name[2] == algorithm)
    name = next(alike, None) or next(iter(spare), None)
    return spare.pop(name) if name else None


_Proven = dict[tuple[str, str, str], Event]


def _proven(lines: Iterable[Event]) -> _Proven:
    """Return the "recorded" events by version ID, ETag and algorithm, without damaged ones, and without events that
    contradict each other.
    """
    found: _Proven = {}
    refuted = set()
    for line in lines:
        if (line.what, line.seal) != ("recorded", SOUND) or not {"algorithm", "digest"} <= line.detail.keys():
            continue
        name = (line.version_id or NULL, line.etag or "", line.detail["algorithm"])
        before = found.setdefault(name, line)
        if (before.size, before.detail["digest"]) != (line.size, line.detail["digest"]):
            refuted.add(name)
        found[name] = line
    return {name: line for name, line in found.items() if name not in refuted}


def version_of_line(line: Event, verified_at: str | None = None) -> Version:
    """Return the object version, with one digest, that a "recorded" event names. verified_at: the digest's."""
    read = line.detail.get("bytes_read", "")
    known = Known(
        digest=line.detail["digest"],
        source=source_of(line.detail.get("source")),
        recorded_at=line.at,
        verified_at=verified_at,
        bytes_read=int(read) if read.isdecimal() else line.size or 0,
    )
    digests = {line.detail["algorithm"]: known}
    return Version.of(line.version_id or NULL, line.etag or "", line.size or 0, digests, line.at)


def contradicted(lines: Sequence[Event], version: Version, algorithm: str) -> str | None:
    """Return the digest that the history has of this version, if it differs from the row's in digest or size.

    Return None if the two agree, or if the history has no such digest.
    """
    told = _proven(lines).get(_name(version, algorithm))
    if told is None or (told.detail["digest"], told.size) == (version.digests[algorithm].digest, version.size):
        return None
    return told.detail["digest"]


def check_key(bucket: str, key: str, rows: Iterable[Version], lines: Sequence[Event]) -> list[Checked]:
    """Check the rows and history lines of one key for damage: whether their seals are right, and whether rows and lines
    agree with each other.

    rows: each row as a version with one digest.
    """
    told, verified = _proven(lines), {line.at for line in lines if (line.what, line.seal) == ("verified", SOUND)}
    found, names = [], set()
    for version in rows:
        ((algorithm, known),) = version.digests.items()
        name, fault = _name(version, algorithm), ""
        names.add(name)
        if known.damaged:
            fault = "the seal is wrong"
        elif contradicted(lines, version, algorithm) is not None:
            fault = "the history has another digest or size"
        elif name not in told:
            fault = "its line is missing from the history"
        elif known.verified_at is not None and known.verified_at not in verified:
            fault = f"the history has no verification at {known.verified_at}"
        words = fault and f"{algorithm} of version {name[0]}, ETag {name[1]}: {fault}"
        found.append(Checked(bucket, key, "row", DAMAGED if fault else SOUND, words))
    for line in lines:
        fault = "the seal is wrong" if line.seal == DAMAGED else ""
        if not fault and line.what == "recorded" and not names.issuperset(_proven([line])):
            fault = "the digest's row is missing"
        words = fault and f"{line.what} at {line.at}: {fault}"
        found.append(Checked(bucket, key, "line", DAMAGED if fault else SOUND, words))
    return found
