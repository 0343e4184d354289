"""Read the results of a run's objects quickly, in key order: a line is parsed no further than its results need."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from auditor.errors import OutputError
from auditor.model.json_text import JsonError, parse_object, typed
from auditor.model.run_lines import FindingLine
from auditor.model.standing import PastObject, Seen
from auditor.runs.packed_lines import packed_lines
from auditor.runs.parts import Part
from auditor.runs.reading import RunReader, read_seal

_RESULTS: Final = b',"outcome":"'
"""The begin of a line's results. No later text of the line can have it, because JSON escapes the quotes of a text."""
_KEY: Final = b'{"key":"'
_NO_VERSION: Final = b',"version_id":null,'
_CACHED: Final = 4096
"""Number of different results of lines that are kept parsed."""


class _Name(Struct, frozen=True):
    """The members of an object's line that name the object version."""

    key: str
    version_id: str | None


class PastRun:
    """Reads the objects of a run in key order, with one part in memory at a time. All methods block.

    start_after: leave out the keys up to this one; None to begin at the first. Raises OutputError for a damaged part.
    """

    def __init__(self, run: RunReader, start_after: str | None = None) -> None:
        self.run = run
        self._start_after = start_after
        self._start = None if start_after is None else start_after.encode(errors="surrogatepass")
        self._seen: dict[bytes, Seen] = {}
        self._kept: dict[Part, bytes | None] = {}
        """The bytes of the file with the findings on the bucket, until its findings on objects are read."""

    @cached_property
    def _by_part(self) -> list[tuple[int, dict[str, Part]]]:
        return self.run.by_part()  # the run has ended, and its parts stay as they are

    def bucket_findings(self) -> list[FindingLine]:
        """Return the findings on the bucket itself."""
        for _, files in self._by_part:
            found: list[FindingLine] = []
            part = files.get("findings")
            data = None if part is None else self._data(part)
            for line in self._findings(part, data):
                if line.key is not None:
                    break
                found.append(line)
            if part is not None and self._start_after is None:
                self._kept[part] = data
            return found
        return []

    def objects(self) -> Iterator[PastObject]:
        """Yield all objects in key order."""
        for _, files in self._parts():
            yield from self._part(files)

    def of_key(self, key: str) -> list[PastObject]:
        """Return the objects with this key: none, one, or one for each version that the run lists."""
        lines = self.run.of_key(key)
        findings = [
            line
            for part in (self.run.parts_with(key, "findings") if any(line.rules for line in lines) else ())
            for line in self._findings(part, self._data(part))
            if line.key == key
        ]
        return [
            PastObject(
                key,
                line.version_id,
                Seen(line.outcome, line.verdict, line.rules, line.reasons, line.since, line.exception),
                tuple(one for one in findings if one.version_id == line.version_id),
            )
            for line in lines
        ]

    def _parts(self) -> Iterator[tuple[int, dict[str, Part]]]:
        start = self._start_after
        seal = None if start is None else read_seal(self.run.store, self.run.path)
        last = {one.path: one.last for one in seal.parts} if seal else {}
        for number, files in self._by_part:
            end = last.get(files["objects"].path) if "objects" in files else None
            if start is None or end is None or end > start:
                yield number, files

    def _part(self, files: dict[str, Part]) -> Iterator[PastObject]:
        part, start = files.get("findings"), self._start_after
        findings = self._findings(part, None if part is None else self._data(part))
        ahead = next(findings, None)
        while ahead is not None and (ahead.key is None or (start is not None and ahead.key <= start)):
            ahead = next(findings, None)
        objects = files.get("objects")
        for line in self._lines(objects, None if objects is None else self._data(objects)):
            if self._is_before(line):
                continue
            key, version_id, seen = self._parsed(line)
            found: list[FindingLine] = []
            if seen.rules:
                while ahead is not None and (ahead.key, ahead.version_id) == (key, version_id):
                    found.append(ahead)
                    ahead = next(findings, None)
            if start is None or key > start:
                yield PastObject(key, version_id, seen, tuple(found))

    def _is_before(self, line: bytes) -> bool:
        """True if the object's key is one of those to leave out. It is not parsed: False if it has escapes."""
        if self._start is None or not line.startswith(_KEY):
            return False
        key = line[len(_KEY) : line.find(b'"', len(_KEY))]
        return b"\\" not in key and key <= self._start  # UTF-8 has the order of the keys

    def _parsed(self, line: bytes) -> tuple[str, str | None, Seen]:
        """Return the key, the version ID and the results of an object's line."""
        begin = line.rfind(_RESULTS)
        results = line[begin:]
        seen = self._seen.get(results) if begin >= 0 else None
        if seen is None:
            seen = self._results(line)
            if len(self._seen) >= _CACHED:
                self._seen.clear()
            if begin >= 0:
                self._seen[results] = seen
        end = line.find(b'"', len(_KEY))
        key = line[len(_KEY) : end]
        if line.startswith(_KEY) and b"\\" not in key and line.startswith(_NO_VERSION, end + 1):
            try:
                return key.decode(), None, seen
            except UnicodeDecodeError as error:
                raise self._damaged("objects", error) from error
        name = self._typed(_Name, "objects", self._json(line))
        return name.key, name.version_id, seen

    def _results(self, line: bytes) -> Seen:
        seen: Seen = self._typed(Seen, "objects", self._json(line))
        return seen

    def _json(self, line: bytes) -> dict[str, Any]:
        try:
            return parse_object(line, "a line")
        except JsonError as error:
            raise self._damaged("objects", error) from error

    def _findings(self, part: Part | None, data: bytes | None) -> Iterator[FindingLine]:
        return map(self._finding, self._lines(part, data))

    def _finding(self, line: bytes) -> FindingLine:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise self._damaged("findings", error) from error
        found: FindingLine = self._typed(FindingLine, "findings", value)
        return found

    def _typed(self, kind: Any, name: str, value: Any) -> Any:
        try:
            return typed(kind, value)
        except JsonError as error:
            raise self._damaged(name, error) from error

    def _damaged(self, kind: str, error: Exception) -> OutputError:
        return OutputError(f"{self.run.uri}/{kind} has a damaged line ({error}): audit again")

    def _data(self, part: Part) -> bytes | None:
        """Return the bytes of a part's file; None if the file is missing."""
        if part in self._kept:
            return self._kept.pop(part)
        return self.run.store.get(f"{self.run.path}/{part.path}")

    def _lines(self, part: Part | None, data: bytes | None) -> Iterator[bytes]:
        """Yield the lines of a part's file. data: its bytes. Raises OutputError if the file is missing or damaged."""
        if part is None:
            return
        try:
            if data is None:
                raise EOFError("it is gone")
            yield from packed_lines(data)
        except (OSError, EOFError, zlib.error) as error:
            place = self.run.store.uri(f"{self.run.path}/{part.path}")
            raise OutputError(f"{place} is damaged ({error}): audit again") from error
