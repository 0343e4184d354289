"""The rows of an S3 Inventory report that concern a target, each as one line of bytes that sorts by key and version.

A line has the key, version ID, ETag, size and LastModified of an object, and the number of its shape. Sorting the lines
as bytes sorts them by the keys' UTF-8 bytes, which is the order of a listing. A CSV file is gzip, without a header
line.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final
from urllib.parse import unquote_plus

from msgspec import Struct

from auditor.errors import InventoryError
from auditor.model.target import Target
from auditor.s3.inventory.facts import FACT_COLUMNS, Shape
from auditor.s3.inventory.fields import CSV
from auditor.s3.inventory.report import IDENTITY, InventoryReport

SHAPES: Final = 16_384
"""Largest number of shapes that are kept. Rows of any further shape have no facts, so that their objects are read by
calls: a bucket with so many different ACLs needs a bounded memory, too."""
SHAPE_BYTES: Final = 16 * 1024 * 1024
"""Characters of all shapes that are kept, for the same reason: an ACL of 100 grants has some 20,000."""
NO_SHAPE: Final = -1
NULL: Final = "null"
"""The ID of a version without an ID. A report leaves it empty or names it so."""

_CONTROL: Final = re.compile(rb"[\x00-\x0a]")
_SHIFT: Final = 0x10

LONGEST_LINE: Final = 1024 * 1024
"""Characters of the longest line that is read. A key has 1,024 bytes, three characters each, and an ACL 100 grants
(S3 User Guide, "Access control list overview"); gzip could make a line of gigabytes out of a small file."""


class InventoryRow(Struct, frozen=True):
    """One row: an object version, and the number of its shape. last_modified: ISO 8601, to the second, without zone."""

    version_id: str
    etag: str
    size: int
    last_modified: str
    shape: int


class Shapes:
    """The different shapes of the rows of a report, each with a number from 0 on. known: those of earlier rows."""

    def __init__(self, known: Iterable[Shape] = ()) -> None:
        self._numbers: dict[Shape, int] = {shape: number for number, shape in enumerate(known)}
        self._size = sum(len(cell) for shape in self._numbers for cell in shape)
        self.left_out = 0
        """Number of rows whose shape came after the last one that was kept."""

    def number(self, shape: Shape) -> int:
        found = self._numbers.get(shape)
        if found is None:
            size = self._size + sum(map(len, shape))
            if len(self._numbers) >= SHAPES or size > SHAPE_BYTES:
                self.left_out += 1
                return NO_SHAPE
            self._size = size
            found = self._numbers[shape] = len(self._numbers)
        return found

    def all(self) -> list[Shape]:
        """Return all shapes, each at the index of its number."""
        return list(self._numbers)


class RowReader:
    """Turns the rows of a report into lines, those of the target's objects alone.

    Delete markers, and without versions all versions but the current one, are left out. number: the number of rows
    that were read. name: the URI of the report, for messages.
    """

    def __init__(self, report: InventoryReport, target: Target, shapes: Shapes, name: str, number: int = 0) -> None:
        self._bucket = report.bucket
        self._target = target
        self._shapes = shapes
        self._name = name
        self._count = len(report.columns)
        self._decode: Callable[[str], str] = _url_decoded if report.form == CSV else str
        self._places = {column: place for place, column in enumerate(report.columns)}
        self._of_shape = [self._places.get(column, -1) for column in FACT_COLUMNS]
        self._identity = [self._places[column] for column in IDENTITY]
        self.number = number

    def lines(self, rows: Iterable[Sequence[str]]) -> Iterator[bytes]:
        """Yield the lines of these rows, without a newline. Raises InventoryError for a row that is not of the report's
        bucket and columns: such a report cannot be relied on.
        """
        bucket, key_at = self._places["Bucket"], self._places["Key"]
        latest, marker = self._places.get("IsLatest", -1), self._places.get("IsDeleteMarker", -1)
        version = self._places.get("VersionId", -1)
        target, prefix, versions = self._target, self._target.prefix, self._target.versions
        decode, number = self._decode, self._shapes.number
        size_at, modified_at, etag_at = self._identity
        for cells in rows:
            self.number += 1
            if len(cells) != self._count:
                raise self._damaged(f"has {len(cells)} columns where {self._count} belong")
            if cells[bucket] != self._bucket:
                raise self._damaged("belongs to another bucket")
            cells = [*cells, ""]  # the last cell stands for a column that is missing
            try:
                key = decode(cells[key_at])
            except UnicodeDecodeError as error:
                raise self._damaged("has a key that is not UTF-8") from error
            if not key.startswith(prefix) or not target.covers(key) or cells[marker] in _TRUE:
                continue
            if not versions and latest >= 0 and cells[latest] not in _TRUE:
                continue
            shape = number(tuple([cells[place] for place in self._of_shape]))
            rest = f"{cells[version] or NULL if versions else ''},{cells[etag_at].strip(_QUOTE)},{cells[size_at]}"
            rest = f"{rest},{cells[modified_at][:19]},{shape}"
            if not rest.isprintable():
                raise self._damaged("has a malformed version ID, ETag, size or date")
            yield encode_key(key) + rest.encode("ascii", "replace")

    def _damaged(self, problem: str) -> InventoryError:
        return InventoryError(f"{self._name}: row {self.number:,} {problem}, so the report is damaged")


_TRUE: Final = frozenset({"true", "True", "TRUE"})
_QUOTE: Final = '"'


def encode_key(key: str) -> bytes:
    """Return the beginning of the line of a key: its bytes, and an end mark below every byte of a key.

    The bytes up to that of a newline are escaped so that their order stays, and no line has a newline in it.
    """
    data = key.encode("utf-8", "surrogatepass")
    if not key.isprintable() and _CONTROL.search(data):
        data = _CONTROL.sub(lambda found: bytes((1, _SHIFT + found[0][0])), data)
    return data + b"\0"


def decode_row(line: bytes) -> InventoryRow | None:
    """Return the row of a line; None if its cells are malformed: nothing is known of its object then."""
    try:
        version_id, etag, size, modified, shape = line[line.index(b"\0") + 1 :].decode().split(",")
        return InventoryRow(version_id, etag, int(size), modified, int(shape))
    except ValueError:
        return None


def _url_decoded(text: str) -> str:
    """Return a key of a CSV report, which has them URL-encoded (storage-inventory, "Key name"). A plus sign stands for
    a space: S3 encodes a plus sign of a key as %2B.
    """
    return unquote_plus(text, errors="surrogatepass") if "%" in text or "+" in text else text


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
