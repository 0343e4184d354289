"""A manifest file that somebody gave: its lines, one at a time, of bounded length and in UTF-8."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from auditor.errors import ManifestError, UsageError

LONGEST: Final = 16 * 1024
"""Bytes of a line: a key has 1,024 of them at most, escaped three times as many."""
_BOM: Final = b"\xef\xbb\xbf"


class Source:
    """One file. shown: as the user named it. origin: its own name, which goes into the ledger."""

    def __init__(self, path: str) -> None:
        self.shown = path
        self.origin = Path(path).name.encode(errors="replace").decode()

    def lines(self) -> Iterator[tuple[int, str]]:
        """Each line with its number, from 1, and with its line end; raises ManifestError, or UsageError without file.

        Lines end at a line feed and nowhere else: a name may hold any other character.
        """
        with _opening(self.shown), open(self.shown, "rb") as file:
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

    def error(self, line: int, sentence: str) -> ManifestError:
        return ManifestError(f"{self.shown}:{line}: {sentence}")


@contextmanager
def _opening(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): give the manifest's own path") from error
