"""The parts of a checksum manifest. A manifest is a list of file names with digests, and is read and written line by
line. Lines are in UTF-8, and of limited length.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Final

from msgspec import Struct

from auditor.errors import ManifestError, OutputError, UsageError
from auditor.ledger.base import KeyRecord
from auditor.model.digest import ALGORITHMS, SIZES, of_hex

HEX_DIGITS: Final = {name: 2 * SIZES[name] for name in ALGORITHMS}
"""Number of hex digits of each algorithm's digest."""
OF_TOOLS: Final = ("sha256", "sha512", "sha1", "md5")
"""The algorithms of sha256sum, its sister programs and BagIt's tools. Their digests differ in length."""
LONGEST: Final = 16 * 1024
"""Largest size of a line, in bytes. A key has at most 1,024 bytes, or three times as many if all its bytes are
escaped."""
_BOM: Final = b"\xef\xbb\xbf"


class ManifestFile:
    """A manifest that the user names by its path: a file or a pipe.

    A pipe is copied to a temporary file first; close() deletes the copy. shown: the path as the user wrote it, for
    messages. origin: the file's name, as the ledger records it.
    """

    def __init__(self, path: str) -> None:
        self.shown = path
        self.origin = Path(path).name.encode(errors="replace").decode()
        self._piped: BinaryIO | None = None

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield each line of the manifest, with its line end, and with its number, from 1. Only a line feed ends a
        line.

        Raises ManifestError for a line that is too long or not UTF-8, UsageError for a file that cannot be read.
        """
        with _opening(self.shown), self._open() as file:
            number = 0
            while data := file.readline(LONGEST + 1):
                number += 1
                if len(data) > LONGEST:
                    raise self.error(number, "the line is longer than any key allows: this is not a manifest")
                try:
                    yield number, (data.removeprefix(_BOM) if number == 1 else data).decode()
                except UnicodeDecodeError as error:
                    raise self.error(
                        number, "the line is not UTF-8, and every key is: convert the file, or take the line out"
                    ) from error

    def close(self) -> None:
        if self._piped is not None:
            self._piped.close()

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        if self._piped is None:
            with open(self.shown, "rb") as file:
                if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    yield file
                    return
                self._piped = _copy(file)
        self._piped.seek(0)
        yield self._piped

    def error(self, line: int, sentence: str) -> ManifestError:
        return ManifestError(f"{self.shown}:{line}: {sentence}")


def _copy(pipe: BinaryIO) -> BinaryIO:
    """Copy a pipe to a temporary file, and return that; stop after a line that is too long, which no reader accepts."""
    spool = TemporaryFile(prefix="auditor-")  # noqa: SIM115 - ManifestFile closes it
    while line := pipe.readline(LONGEST + 1):
        try:
            spool.write(line)
        except OSError as error:
            reason = error.strerror or error
            raise OutputError(f"the temporary file of an import cannot be written ({reason}): set TMPDIR") from error
        if len(line) > LONGEST:
            break
    return spool


@contextmanager
def _opening(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): give the manifest's own path") from error


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
    head: bytes = b""
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
        f"a digest of {len(digest)} hexadecimal digits is not one of {', '.join(OF_TOOLS)}: the ledger keeps"
        " only these",
    )


def checked(digest: str, algorithm: str, source: ManifestFile, line: int) -> str:
    """Return the digest in lower case. Raises ManifestError if it cannot be a digest by this algorithm.

    line: number of the digest's line in the file, for the error.
    """
    found = of_hex(digest, algorithm)
    if found is None:
        raise source.error(
            line,
            f"{digest.lower()[:80]!r} is not a valid {algorithm} digest: write {HEX_DIGITS[algorithm]} hexadecimal"
            " digits",
        )
    return found


def last_digests(subject: KeyRecord, algorithms: Iterable[str]) -> list[str]:
    """Return the digests by these algorithms of the key's newest recorded version. Versions that were deleted for good
    do not count.

    A digest that the newest version lacks is left out, because the digest of an earlier version is not the key's.
    """
    left = [version.digests for version in subject.versions if version.removed_at is None]
    return [left[-1][name].digest for name in algorithms if left and name in left[-1]]
