"""Sort lines of bytes on disk in bounded memory: sorted runs in temporary files, which are then merged."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, Final, Self

from auditor.errors import OutputError

RUN_BYTES: Final = 48 * 1024 * 1024
"""Memory of the lines of one run while it is sorted."""
FAN_IN: Final = 64
"""Largest number of runs that are merged at once. More of them are merged in several rounds."""
_OVERHEAD: Final = 41
"""Bytes of memory of a line beside its own: those of the object, and of its place in a list (CPython)."""
_BUFFER: Final = 256 * 1024


def _temporary_file() -> IO[bytes]:
    return TemporaryFile(prefix="auditor-", buffering=_BUFFER)


class SortedLines:
    """Lines of bytes without a newline in them: add() takes them in any order, sorted() yields them in order.

    Equal lines stay as often as they were added. Close it, or use it in a `with`: the files are deleted. run_bytes:
    memory of the lines that are sorted at once. fan_in: largest number of files that are merged at once. new_file:
    opens a file that is deleted when it is closed; it may raise OSError.
    """

    def __init__(
        self, run_bytes: int = RUN_BYTES, fan_in: int = FAN_IN, new_file: Callable[[], IO[bytes]] = _temporary_file
    ) -> None:
        self._new_file = new_file
        self._run_bytes = run_bytes
        self._fan_in = fan_in
        self._runs: list[list[IO[bytes]]] = []  # by the number of times that their lines were merged
        self._lines: list[bytes] = []
        self._bytes = 0

    def add(self, lines: Iterable[bytes]) -> None:
        """Take lines. Raises OutputError if a temporary file cannot be written."""
        for line in lines:
            self._lines.append(line)
            self._bytes += len(line) + _OVERHEAD
            if self._bytes >= self._run_bytes:
                self._write_run()

    def sorted(self) -> Iterator[bytes]:
        """Yield all lines in the order of their bytes. Call it once, after the last add()."""
        self._lines.sort()
        runs = [run for level in self._runs for run in level]
        yield from heapq.merge(*map(_read, runs), iter(self._lines))

    def close(self) -> None:
        for level in self._runs:
            for run in level:
                run.close()
        self._runs = []
        self._lines = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _write_run(self) -> None:
        self._lines.sort()
        self._keep(self._written(self._lines), 0)
        self._lines = []
        self._bytes = 0

    def _keep(self, run: IO[bytes], level: int) -> None:
        if level == len(self._runs):
            self._runs.append([])
        runs = self._runs[level]
        runs.append(run)
        if len(runs) == self._fan_in:
            merged = self._written(heapq.merge(*map(_read, runs)))
            for one in runs:
                one.close()
            runs.clear()
            self._keep(merged, level + 1)

    def _written(self, lines: Iterable[bytes]) -> IO[bytes]:
        with _spooling():
            file = self._new_file()
            file.writelines(line + b"\n" for line in lines)
            file.flush()
        return file


def _read(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    for line in file:
        yield line[:-1]


@contextmanager
def _spooling() -> Iterator[None]:
    """Convert an OSError in this `with` block to an OutputError that names the temporary file."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"a temporary file for the inventory cannot be written ({error.strerror}): free some space, or set TMPDIR"
        ) from error
