"""The parts of a run folder: how their files are named, written and read back."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, Self, TypeVar

from msgspec import Struct

from auditor.aio.loop import trim
from auditor.errors import OutputError, RunDamaged
from auditor.model.json_codec import JsonError, encode_line
from auditor.model.line_records import read_line
from auditor.model.run_lines import ObjectLine
from auditor.runs.run_files import SealedPart, key_of, sha256_of
from auditor.runs.stores.base import Store
from auditor.runs.stores.local import output_errors, private

LONGEST_LINE: Final = 1024 * 1024
"""Bytes of the longest line that is read."""
LARGEST_UNPACKED: Final = 1024 * 1024 * 1024
"""Bytes of all lines of a file. 50,000 lines with the longest ACLs have about half of it."""
_BUFFER: Final = 64 * 1024


def packed_lines(data: bytes | io.BufferedReader, largest: int = LARGEST_UNPACKED) -> Iterator[bytes]:
    """Yield the lines of a file in gzip, each with its line end. data: the file, or its bytes. largest: limit in bytes
    of all lines. Raises OSError, EOFError or zlib.error for damage, which a line or a file beyond its limit is, too:
    that is a gzip.BadGzipFile.
    """
    left = largest
    file = io.BytesIO(data) if isinstance(data, bytes) else data
    with io.BufferedReader(gzip.GzipFile(fileobj=file), _BUFFER) as lines:
        for line in iter(partial(lines.readline, LONGEST_LINE + 1), b""):
            left -= len(line)
            if len(line) > LONGEST_LINE:
                raise gzip.BadGzipFile("a line is longer than 1 MiB")
            if left < 0:
                raise gzip.BadGzipFile(f"it unpacks to more than {largest // 1024**2} MiB")
            yield line


T = TypeVar("T")

KINDS: Final = ("findings", "undecided", "routed", "objects")
"""The kinds of a part's files. They are put in place in this order: with the file of objects, the part is whole."""
LEVEL: Final = 3
"""zlib's highest level that does no lazy matching. It takes half the CPU of higher levels, for parts that are at most a
tenth larger."""
_PATH: Final = re.compile(r"(findings|undecided|routed|objects)/part-([0-9a-zA-Z]{1,16})-([0-9]{5,})\.jsonl\.gz")


class Part(Struct, frozen=True, order=True):
    """One file of a part of a run. A part has the lines of successive objects, in one file for each kind of lines.

    range_id: the range of keys to which the part belongs. number: of the part in this range. kind: one of KINDS.
    """

    range_id: str
    number: int
    kind: str

    @property
    def path(self) -> str:
        """The file's path in the run folder."""
        return f"{self.kind}/part-{self.range_id}-{self.number:05}.jsonl.gz"

    @property
    def spool_name(self) -> str:
        """The hidden name of the file while it grows."""
        return f".{self.kind}-part-{self.range_id}-{self.number:05}.tmp"

    @classmethod
    def parse(cls, path: str) -> Self | None:
        """Return the Part with this path in the run folder; None if the path is not that of a part's file."""
        match = _PATH.fullmatch(path)
        return cls(match[2], int(match[3]), match[1]) if match else None


def named_parts(entries: Iterable[SealedPart]) -> Iterator[tuple[Part, SealedPart]]:
    """Yield the files of parts that the entries of a seal name, each with its entry."""
    for entry in entries:
        if (part := Part.parse(entry.path)) is not None:
            yield part, entry


class PartFile:
    """A part's file that is compressed while it grows on disk. Equal lines always give equal bytes.

    The digest of the file is computed as it grows, so that the seal of a run needs no second reading.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._digest = hashlib.sha256()
        self._bytes = self._lines = 0
        self._first = self._last = b""
        self._deflate = zlib.compressobj(LEVEL, zlib.DEFLATED, 31)  # 31: with gzip's header; its time field is zero
        with output_errors(path):
            path.unlink(missing_ok=True)
            self._file = open(path, "xb", opener=private)  # noqa: SIM115 - close() closes it

    def write(self, lines: Sequence[bytes]) -> None:
        """Write lines of JSON, each with its newline."""
        if lines:
            self._first = self._first or lines[0]
            self._last = lines[-1]
            self._lines += len(lines)
            self._put(self._deflate.compress(b"".join(lines)))

    def close(self) -> None:
        """Complete the file, and give the memory of its lines back to the system."""
        self._put(self._deflate.flush())
        with output_errors(self.path):
            self._file.close()
        trim()

    def sealed(self, part: Part) -> SealedPart:
        """Return the entry of the closed file in the seal of its run."""
        return SealedPart(
            path=part.path,
            first=key_of(self._first),
            last=key_of(self._last),
            lines=self._lines,
            bytes=self._bytes,
            sha256=self._digest.hexdigest(),
        )

    def _put(self, data: bytes) -> None:
        self._digest.update(data)
        self._bytes += len(data)
        with output_errors(self.path):
            self._file.write(data)

    def discard(self) -> None:
        """Close the file and delete it, whether it is complete or not."""
        for step in (self._file.close, self.path.unlink):
            try:
                step()
            except OSError:  # the disk is full or the file gone, as an earlier error said
                continue


def found_parts(store: Store, folder: str) -> list[Part]:
    """Return the files of all parts in a run folder, sorted, also of parts that no checkpoint covers."""
    start = len(folder) + 1
    found = (Part.parse(path[start:]) for path in store.list(f"{folder}/"))
    return sorted(part for part in found if part is not None)


def tidy(store: Store, folder: str, range_id: str, first: int) -> None:
    """Delete the parts of a range whose number is `first` or higher: a killed process left them.

    Raises RunDamaged if a part below `first` is gone, because the lines of its objects are lost.
    """
    parts = [part for part in found_parts(store, folder) if part.range_id == range_id]
    # If only the bucket had findings, the first part has no file of objects.
    there = {part.number for part in parts if part.kind == "objects" or part.number == 0}
    lost = next((number for number in range(first) if number not in there), None)
    if lost is not None:
        place = store.uri(f"{folder}/{Part(range_id, lost, 'objects').path}")
        raise RunDamaged(f"{place} is gone, which an earlier checkpoint names: start a new run")
    for part in parts:
        if part.number >= first:
            store.delete(f"{folder}/{part.path}")


def delete_spools(spool: Path, names: Iterable[str], range_id: str | None = None) -> None:
    """Delete the temporary files that a killed process left in the local directory `spool`: those of the files with
    these names, and those of a range's parts.
    """
    patterns = [] if range_id is None else [f".*-part-{range_id}-*.tmp"]
    for name in names:
        folder, _, file = name.rpartition("/")
        patterns.append(f"{folder}/.{file}.*.tmp" if folder else f".{file}.*.tmp")
    with output_errors(spool):
        for left in [path for pattern in patterns for path in spool.glob(pattern)]:
            left.unlink(missing_ok=True)


def sealed_from_store(store: Store, folder: str, part: Part) -> SealedPart:
    """Return the entry of a part's file that an earlier process wrote. Raises OutputError if it is gone or damaged."""
    path = f"{folder}/{part.path}"
    data = store.get(path)
    number, first, last = 0, b"", b""
    for last in _unpacked(data, store.uri(path)):
        first, number = first or last, number + 1
    assert data is not None  # a file that is gone has no lines
    try:
        ends = [key_of(line) if line else None for line in (first, last)]
    except JsonError as error:
        raise _damaged(store.uri(path), error) from error
    return SealedPart(
        path=part.path, first=ends[0], last=ends[1], lines=number, bytes=len(data), sha256=sha256_of(data)
    )


def part_lines(store: Store, folder: str, part: Part) -> Iterator[bytes]:
    """Yield the lines of a part's file. Raises OutputError if the file is missing or damaged."""
    path = f"{folder}/{part.path}"
    return _unpacked(store.get(path), store.uri(path))


def typed_lines(store: Store, folder: str, part: Part, kind: type[T], beginning: bytes = b"") -> Iterator[T]:
    """Yield the lines of a part's file that begin with this text, as objects of the type `kind`, such as ObjectLine.
    Raises OutputError if the file is missing or damaged.
    """
    path = f"{folder}/{part.path}"
    return read_lines(kind, store.get(path), store.uri(path), beginning)


def read_lines(kind: type[T], data: bytes | None, uri: str, beginning: bytes = b"") -> Iterator[T]:
    """Yield what typed_lines() yields. data: the bytes of the file; None if it is missing. uri: of the file."""
    for line in _unpacked(data, uri):
        if line.startswith(beginning):
            try:
                yield read_line(kind, line)
            except JsonError as error:
                raise _damaged(uri, error) from error


def keys_at(store: Store, folder: str, part: Part, numbers: Sequence[int]) -> Iterator[str]:
    """Yield the keys of these lines of a file of objects. numbers: ascending; the first line is 1. Raises OutputError
    if the file is missing or damaged, or has fewer lines.
    """
    lines = part_lines(store, folder, part)
    done = 0
    for number in numbers:
        try:
            key = key_of(next(islice(lines, number - done - 1, None), b""))
        except JsonError as error:
            raise _damaged(store.uri(f"{folder}/{part.path}"), error) from error
        if key is None:
            raise _damaged(store.uri(f"{folder}/{part.path}"), "a line has no key")
        yield key
        done = number


def lines_of_key(store: Store, folder: str, part: Part, key: str) -> Iterator[ObjectLine]:
    """Yield the lines of a file of objects that are about this key. Raises OutputError as typed_lines() does."""
    return typed_lines(store, folder, part, ObjectLine, encode_line({"key": key}).removesuffix(b"}\n") + b",")


def _unpacked(data: bytes | None, uri: str) -> Iterator[bytes]:
    try:
        if data is None:
            raise EOFError("it is gone")
        yield from packed_lines(data)
    except (OSError, EOFError, zlib.error) as error:
        raise _damaged(uri, error) from error


def _damaged(uri: str, error: object) -> OutputError:
    return OutputError(f"{uri} is damaged ({error}): audit again")
