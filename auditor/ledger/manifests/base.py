"""A checksum manifest names files and their digests; it is read line by line and written key by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from auditor.ledger.base import KeyRecord
from auditor.ledger.manifests.source import ManifestFile
from auditor.model.digest import ALGORITHMS, SIZES, of_hex

HEX_DIGITS: Final = {name: 2 * SIZES[name] for name in ALGORITHMS}
"""Digits of a digest of each algorithm."""
OF_TOOLS: Final = ("sha256", "sha1", "md5")
"""The algorithms of sha256sum, sha1sum, md5sum and BagIt's tools; the digest's length tells which."""


@dataclass(frozen=True, slots=True)
class Record:
    """One digest of a manifest. line: its number, from 1. name: unescaped.

    version: the version of the name, "" when the manifest has none. size: bytes.
    """

    line: int
    name: str
    algorithm: str
    digest: str
    size: int | None = None
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One way to write a manifest.

    algorithms: the ones it can hold. single: one algorithm and one line a key. head: the bytes before all lines.
    nameable: a line can hold this name. rows: the lines of one key under a name, for the algorithms given; none without
    such a digest. read: all records of a file; raises ManifestError at the first wrong line.
    """

    name: str
    algorithms: tuple[str, ...]
    single: bool
    head: bytes
    nameable: Callable[[str], bool]
    rows: Callable[[str, KeyRecord, tuple[str, ...]], Iterable[bytes]]
    read: Callable[[ManifestFile], Iterator[Record]]


def algorithm_of(digest: str, source: ManifestFile, line: int) -> str:
    """The algorithm of OF_TOOLS with digests of this length; raises ManifestError."""
    for name in OF_TOOLS:
        if len(digest) == HEX_DIGITS[name]:
            return name
    raise source.error(
        line,
        f"a digest of {len(digest)} hexadecimal digits is not one of {', '.join(OF_TOOLS)}: the ledger keeps these",
    )


def checked(digest: str, algorithm: str, source: ManifestFile, line: int) -> str:
    """The digest in lower case; raises ManifestError when the algorithm has no such digest."""
    found = of_hex(digest, algorithm)
    if found is None:
        raise source.error(
            line, f"{digest.lower()[:80]!r} is no {algorithm} digest: write {HEX_DIGITS[algorithm]} hexadecimal digits"
        )
    return found


def last_digest(subject: KeyRecord, algorithm: str) -> str | None:
    """The digest of the last recorded version; an older version's digest is not the key's."""
    if not subject.versions:
        return None
    known = subject.versions[-1].digests.get(algorithm)
    return known.digest if known else None
