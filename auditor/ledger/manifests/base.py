"""The parts of a checksum manifest. A manifest is a list of file names with digests, and is read and written line by
line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec import Struct

from auditor.ledger.base import KeyRecord
from auditor.ledger.manifests.source import ManifestFile
from auditor.model.digest import ALGORITHMS, SIZES, of_hex

HEX_DIGITS: Final = {name: 2 * SIZES[name] for name in ALGORITHMS}
"""Number of hex digits of each algorithm's digest."""
OF_TOOLS: Final = ("sha256", "sha512", "sha1", "md5")
"""The algorithms of sha256sum, its sister programs and BagIt's tools. Their digests differ in length."""


class Record(Struct, frozen=True):
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
    """Version ID of the object; "" if the manifest has no version IDs."""


class Form(Struct, frozen=True, kw_only=True):
    """A form of checksum manifests, such as that of sha256sum: its properties, its reader and its writer."""

    name: str
    algorithms: tuple[str, ...]
    """Algorithms whose digests a manifest of this form can hold."""
    single: bool
    """True if a manifest of this form has only one algorithm, and only one line for each key."""
    head: bytes
    """The bytes at the start of a manifest, before its first line."""
    nameable: Callable[[str], bool]
    """Returns True if a line of this form can hold the name."""
    rows: Callable[[str, KeyRecord, tuple[str, ...]], Iterable[bytes]]
    """Returns the lines for a key; none if the key has no digest by the algorithms.

    Its arguments are the key's name in the manifest, the ledger's record of the key, and the algorithms."""
    read: Callable[[ManifestFile], Iterator[Record]]
    """Yields all records of a manifest file; raises ManifestError at the first malformed line."""


def algorithm_of(digest: str, source: ManifestFile, line: int) -> str:
    """Return the algorithm of a digest, by the digest's length. Raises ManifestError if no algorithm has this length.

    line: number of the digest's line in the file, for the error.
    """
    for name in OF_TOOLS:
        if len(digest) == HEX_DIGITS[name]:
            return name
    raise source.error(
        line,
        f"a digest of {len(digest)} hexadecimal digits is not one of {', '.join(OF_TOOLS)}: the ledger keeps these",
    )


def checked(digest: str, algorithm: str, source: ManifestFile, line: int) -> str:
    """Return the digest in lower case. Raises ManifestError if it cannot be a digest by this algorithm.

    line: number of the digest's line in the file, for the error.
    """
    found = of_hex(digest, algorithm)
    if found is None:
        raise source.error(
            line, f"{digest.lower()[:80]!r} is no {algorithm} digest: write {HEX_DIGITS[algorithm]} hexadecimal digits"
        )
    return found


def last_digest(subject: KeyRecord, algorithm: str) -> str | None:
    """Return the digest by this algorithm of the key's newest recorded version. Versions that were deleted for good do
    not count.

    Return None if the newest version lacks such a digest, because the digest of an earlier version is not the key's.
    """
    left = [version for version in subject.versions if version.removed_at is None]
    if not left:
        return None
    known = left[-1].digests.get(algorithm)
    return known.digest if known else None
