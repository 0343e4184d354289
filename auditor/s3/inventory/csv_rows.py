"""Read the rows of a CSV file of an S3 Inventory report: gzip, without a header line."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from typing import Final

from auditor.errors import InventoryError

LONGEST_LINE: Final = 1024 * 1024
"""Characters of the longest line that is read. A key has 1,024 bytes, three characters each, and an ACL 100 grants
(S3 User Guide, "Access control list overview"); gzip could make a line of gigabytes out of a small file."""


def csv_rows(pieces: Iterator[bytes], name: str) -> Iterator[list[str]]:
    """Yield the rows in the bytes of a gzip file. name: its URI. Raises InventoryError if it is damaged."""
    try:
        with gzip.GzipFile(fileobj=io.BufferedReader(PieceReader(pieces))) as plain:
            yield from csv.reader(_lines(io.TextIOWrapper(plain, encoding="utf-8", newline=""), name), strict=True)
    except (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise InventoryError(f"{name} is not gzipped CSV ({error}), so the report is damaged") from error


def _lines(text: io.TextIOWrapper, name: str) -> Iterator[str]:
    while line := text.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE and line[-1] != "\n":
            raise InventoryError(f"{name} has a line that is too long for a row, so the report is damaged")
        yield line


class PieceReader(io.RawIOBase):
    """A file to read that has the bytes of an iterator."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
