"""Names and attributes of the table's items. Digests have the sk "version#etag"; the sk of other items begins with a
space.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from auditor.errors import LedgerError
from auditor.ledger.base import S3, Entry, Event, Expectation, Known, Version
from auditor.ledger.history import recorded
from auditor.ledger.key_record import KeyRows, Latest, NoticedVersion, source_of, version_of
from auditor.ledger.matching import NULL, LedgerRow

Item = Mapping[str, Mapping[str, Any]]
Name = tuple[str, str]
"""pk and sk of an item."""

# The order of these prefixes matters: a query from STATE on leaves out the many claims and history lines, and a query
# from DIGESTS on reads digests alone.
CLAIM: Final = " claim#"
HISTORY: Final = " history#"
STATE: Final = " i"
MANIFEST: Final = " manifest#"
NOTICE: Final = " notice"
NOTICED: Final = " told#"
DIGESTS: Final = "!"

_LONGEST_PK: Final = 2048
_LONGEST_IDENTITY: Final = 1000
"""Bytes of an identity in a sort key, at most. DynamoDB takes 1,024, and some identities have a prefix."""
_OWN: Final = frozenset({"pk", "sk", "size", "etag", "place"})
"""Attributes that are not digests. Names with an underscore are not digests either: no algorithm has such a name."""


def partition(bucket: str, key: str) -> str:
    """Return the pk of a key's items. Raise LedgerError if it is too long."""
    pk = f"{bucket}/{key}"
    if len(pk.encode("utf-8", "surrogatepass")) > _LONGEST_PK:
        raise LedgerError(
            f"the key {key[:100]!r}.. in bucket {bucket!r} is longer than DynamoDB takes: use sqlite:PATH"
        )
    return pk


def identity(version_id: str | None, etag: str) -> str:
    """Return the sk of a version's digests. It is a hash if the plain name is too long or ambiguous, or sorts before
    DIGESTS.
    """
    version = version_id or NULL
    plain = f"{version}#{etag}"
    if "#" not in version and plain >= DIGESTS and len(plain.encode("utf-8", "surrogatepass")) <= _LONGEST_IDENTITY:
        return plain
    return f"sha256:{_hash(version, etag)}"


def entry_name(entry: Entry) -> Name:
    return partition(entry.bucket, entry.key), identity(entry.version_id, entry.etag)


def manifest(algorithm: str, origin: str) -> str:
    """Return the sk of an expected digest."""
    return MANIFEST + _hash(algorithm, origin)


def _hash(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def text(item: Item, name: str) -> str | None:
    value = item.get(name, {}).get("S")
    return None if value is None else str(value)


def number(item: Item, name: str) -> int | None:
    value = item.get(name, {}).get("N")
    return None if value is None else int(value)


def version_and_etag(item: Item) -> tuple[str, str]:
    """Return the item's version and ETag. They are attributes if the sk is a hash."""
    version, _, etag = item["sk"]["S"].partition("#")
    return text(item, "version_id") or version, text(item, "etag") or etag


def row(item: Item) -> LedgerRow:
    version, etag = version_and_etag(item)
    digests = {name: value["S"] for name, value in item.items() if _is_digest(name) and "S" in value}
    return LedgerRow(version, etag, number(item, "size") or 0, digests)


def _is_digest(name: str) -> bool:
    return name not in _OWN and "_" not in name


def evidence(item: Item) -> tuple[Version, int]:
    """Return the version in a digest's item, and its place.

    An item that has no sources was written by an earlier auditor, which read the object whole.
    """
    found = row(item)
    hashed_at = text(item, "hashed_at") or ""
    known = {
        name: Known(
            digest=digest,
            source=source_of(text(item, f"{name}_source")),
            recorded_at=text(item, f"{name}_at") or hashed_at,
            verified_at=text(item, f"{name}_verified_at"),
            bytes_read=found.size if (read := number(item, f"{name}_bytes_read")) is None else read,
        )
        for name, digest in found.digests.items()
    }
    version = version_of(found.version_id, found.etag, found.size, known, hashed_at)
    return version, number(item, "place") or 0


def recorded_lines(bucket: str, key: str, item: Item) -> list[tuple[int, Event]]:
    """Return the history lines that a digest's item implies, each with its place. The place is 0 in items of an earlier
    auditor.
    """
    version, _ = evidence(item)
    lines = []
    for algorithm, known in version.digests.items():
        entry = Entry(
            bucket=bucket,
            key=key,
            version_id=version.version_id,
            etag=version.etag,
            size=version.size,
            digests={algorithm: known.digest},
            hashed_at=known.recorded_at,
            source=known.source,
            bytes_read=known.bytes_read,
        )
        lines.append((number(item, f"{algorithm}_place") or 0, recorded(entry, algorithm)))
        if (before := text(item, f"{algorithm}_s3_at")) is not None:
            s3s_entry = replace(entry, hashed_at=before, source=S3, bytes_read=0)
            lines.append((number(item, f"{algorithm}_s3_place") or 0, recorded(s3s_entry, algorithm)))
    return lines


def latest(item: Item | None) -> Latest | None:
    if item is None:
        return None
    return Latest(
        text(item, "sequencer") or "",
        bool(item["deleted"]["BOOL"]),
        text(item, "at") or "",
        text(item, "version_id"),
    )


def noticed_version(item: Item | None) -> NoticedVersion | None:
    if item is None:
        return None
    return NoticedVersion(text(item, "sequencer") or "", number(item, "place") or 0, text(item, "at") or "")


def expectation(key: str, item: Item) -> Expectation:
    return Expectation(
        key=key,
        algorithm=text(item, "algorithm") or "",
        digest=text(item, "digest") or "",
        origin=text(item, "origin") or "",
        imported_at=text(item, "imported_at") or "",
        size=number(item, "size"),
    )


def add(rows: KeyRows, key: str, item: Item) -> None:
    """Add one item of a key to its rows. The item's sk is STATE or higher."""
    sk = item["sk"]["S"]
    if sk >= DIGESTS:
        rows.versions.append(evidence(item))
    elif sk.startswith(MANIFEST):
        rows.expectations.append(expectation(key, item))
    elif sk == NOTICE:
        rows.latest = latest(item)
    elif sk.startswith(NOTICED) and (found := noticed_version(item)):
        rows.noticed[text(item, "version_id") or NULL, text(item, "etag") or ""] = found
