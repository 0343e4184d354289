"""What a manifest is: a file that names files and their digests, read line by line and written key by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from auditor.ledger.base import KeyRecord
from auditor.ledger.manifests.source import ManifestFile
from auditor.model.digest import ALGORITHMS, SIZES, of_hex

HEX_DIGITS: Final = {name: 2 * SIZES[name] for name in ALGORITHMS}
"""How long a digest of each algorithm is."""
OF_TOOLS: Final = ("sha256", "sha1", "md5")
"""What sha256sum, sha1sum, md5sum and BagIt's tools compute: the digest's length tells which."""


@dataclass(frozen=True, slots=True)
class Record:
    """One digest of a manifest. line: where it stands, from 1. name: as it is meant, every escape undone.

    version: which version of the name it speaks of, "" where the manifest knows none. size: bytes.
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

    algorithms: those that it can hold. single: one algorithm and one line a key. head: what comes before all lines.
    nameable: whether a line can hold this name. rows: the lines of one key under a name, of the algorithms given; none
    where it has no such digest. read: all records of a file; raises ManifestError at the first line that is not one.
    """

    name: str
    algorithms: tuple[str, ...]
    single: bool
    head: bytes
    nameable: Callable[[str], bool]
    rows: Callable[[str, KeyRecord, tuple[str, ...]], Iterable[bytes]]
    read: Callable[[ManifestFile], Iterator[Record]]


def algorithm_of(digest: str, source: ManifestFile, line: int) -> str:
    """Of OF_TOOLS, by the digest's length; raises ManifestError."""
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
    """Of the version that was recorded last; an older version's digest would not be the key's."""
    if not subject.versions:
        return None
    known = subject.versions[-1].digests.get(algorithm)
    return known.digest if known else None
