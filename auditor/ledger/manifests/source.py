"""Read a manifest file of the user line by line. Lines are in UTF-8, and of limited length."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Final

from auditor.errors import ManifestError, OutputError, UsageError

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
                    raise self.error(number, "the line is longer than any key allows: this is no manifest")
                try:
                    yield number, (data.removeprefix(_BOM) if number == 1 else data).decode()
                except UnicodeDecodeError as error:
                    raise self.error(
                        number, "the line is not UTF-8, which every key is: convert the file, or take the line out"
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
