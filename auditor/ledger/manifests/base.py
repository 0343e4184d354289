"""The parts of a checksum manifest, which is a list of file names with digests. It is read and written line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from auditor.ledger.base import KeyRecord
from auditor.ledger.manifests.source import ManifestFile
from auditor.model.digest import ALGORITHMS, SIZES, of_hex

HEX_DIGITS: Final = {name: 2 * SIZES[name] for name in ALGORITHMS}
"""Number of hex digits of each algorithm's digest."""
OF_TOOLS: Final = ("sha256", "sha512", "sha1", "md5")
"""The algorithms of sha256sum and its like, and of BagIt's tools. The digest's length tells the algorithm."""


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a checksum manifest: the digest of one file."""

    line: int
    """Number of the line, from 1."""
    name: str
    """The file's name, unescaped."""
    algorithm: str
    digest: str
    size: int | None = None
    """Bytes; None if the manifest has no sizes."""
    version: str = ""
    """Version of the object; "" if the manifest has no versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form of checksum manifests, such as sha256sum's: its properties, its reader and its writer."""

    name: str
    algorithms: tuple[str, ...]
    """Algorithms whose digests a manifest of this form can hold."""
    single: bool
    """True if a manifest has one algorithm, and one line for each key."""
    head: bytes
    """The bytes before all lines."""
    nameable: Callable[[str], bool]
    """True if a line can hold this name."""
    rows: Callable[[str, KeyRecord, tuple[str, ...]], Iterable[bytes]]
    """Returns the lines of a key, with its name in the manifest and the digests by these algorithms; no line if it has
    none."""
    read: Callable[[ManifestFile], Iterator[Record]]
    """Yields all records of a file; raises ManifestError at the first wrong line."""


def algorithm_of(digest: str, source: ManifestFile, line: int) -> str:
    """Return the algorithm whose digests have this length. Raises ManifestError if there is none. line: its number."""
    for name in OF_TOOLS:
        if len(digest) == HEX_DIGITS[name]:
            return name
    raise source.error(
        line,
        f"a digest of {len(digest)} hexadecimal digits is not one of {', '.join(OF_TOOLS)}: the ledger keeps these",
    )


def checked(digest: str, algorithm: str, source: ManifestFile, line: int) -> str:
    """Return the digest in lower case. Raises ManifestError if the algorithm has no such digests. line: its number."""
    found = of_hex(digest, algorithm)
    if found is None:
        raise source.error(
            line, f"{digest.lower()[:80]!r} is no {algorithm} digest: write {HEX_DIGITS[algorithm]} hexadecimal digits"
        )
    return found


def last_digest(subject: KeyRecord, algorithm: str) -> str | None:
    """Return the digest of the key's last recorded version that was not deleted for good.

    None if that version has no digest by the algorithm: an earlier version's digest is not the key's.
    """
    left = [version for version in subject.versions if version.removed_at is None]
    if not left:
        return None
    known = left[-1].digests.get(algorithm)
    return known.digest if known else None
