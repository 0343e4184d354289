"""Read the objects of an earlier run along with a listing, from parts that are as the run sealed them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence

from auditor.errors import OutputError
from auditor.model.json_codec import JsonError
from auditor.model.line_records import read_line
from auditor.model.run_lines import ObjectLine
from auditor.runs.packed_lines import packed_lines
from auditor.runs.parts import Part
from auditor.runs.reading import RunReader, read_seal
from auditor.runs.seal import SealedPart, key_of, sha256_of

Lines = Mapping[tuple[str, str | None], ObjectLine]
"""Lines of objects by key and version ID."""


class EarlierObjects:
    """Reads the lines of an earlier run in the order of their keys. All methods block.

    run: a complete run. start_after: leave out the keys up to this one; None to begin at the first. Raises OutputError
    for a part that is damaged or gone, or that differs from the run's seal: facts that are used again must be those
    that the run wrote.
    """

    def __init__(self, run: RunReader, start_after: str | None = None) -> None:
        self._run = run
        self._start_after = start_after
        self._lines = self._after(start_after)
        self._next: tuple[str, bytes] | None = None
        self._last: dict[tuple[str, str | None], ObjectLine] = {}
        self._begun = False

    def of(self, keys: Sequence[str]) -> Lines:
        """Return the lines of the objects with these keys, which are in order and not before those of the last call."""
        if not keys:
            return {}
        if not self._begun:
            self._begun, self._next = True, next(self._lines, None)
        wanted, last = set(keys), keys[-1]
        found = {name: line for name, line in self._last.items() if name[0] in wanted}
        while self._next is not None and self._next[0] <= last:
            key, text = self._next
            if key in wanted:
                line = self._parsed(text)
                found[key, line.version_id] = line
            self._next = next(self._lines, None)
        self._last = {name: line for name, line in found.items() if name[0] == last}
        return found

    def _after(self, start: str | None) -> Iterator[tuple[str, bytes]]:
        seal = read_seal(self._run.store, self._run.path)
        if seal is None:
            raise OutputError(f"{self._run.uri} has no seal, and only a seal shows that its lines are unaltered")
        sealed = {part.path: part for part in seal.parts}
        for _, files in self._run.by_part():
            part = files.get("objects")
            if part is None:
                continue
            entry = sealed.get(part.path)
            if entry is None or start is None or entry.last is None or entry.last > start:
                yield from ((key, line) for key, line in self._of_part(part, entry) if start is None or key > start)

    def _of_part(self, part: Part, entry: SealedPart | None) -> Iterator[tuple[str, bytes]]:
        path = f"{self._run.path}/{part.path}"
        data = self._run.store.get(path)
        if data is None or entry is None or sha256_of(data) != entry.sha256:
            raise OutputError(f"{self._run.store.uri(path)} is not as the run sealed it: `auditor check` says more")
        try:
            for line in packed_lines(data):
                key = key_of(line)
                if key is not None:
                    yield key, line
        except (OSError, EOFError, zlib.error, JsonError) as error:
            raise self._damaged(error) from error

    def _parsed(self, line: bytes) -> ObjectLine:
        try:
            return read_line(ObjectLine, line)
        except JsonError as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> OutputError:
        return OutputError(f"{self._run.uri}/objects has a damaged line ({error}): audit again")
