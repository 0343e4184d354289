"""Read the results of a run's objects in key order. Only the members of a line that results need become values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TypeVar

from auditor.model.run_lines import FindingLine, ObjectLine, PastObject, Seen
from auditor.runs.parts import Part, read_lines
from auditor.runs.reading import RunReader, read_seal

T = TypeVar("T")


class _ResultLine(Seen, frozen=True, kw_only=True):
    """The members of an object's line that two runs compare."""

    key: str
    version_id: str | None


def _seen(line: Seen | ObjectLine) -> Seen:
    return Seen(line.outcome, line.verdict, line.rules, line.reasons, line.since, line.exception)


class PastRun:
    """Reads the objects of a run in key order, with one part in memory at a time. All methods block.

    start_after: leave out the keys up to this one; None to begin at the first. Raises OutputError for a damaged part.
    """

    def __init__(self, run: RunReader, start_after: str | None = None) -> None:
        self.run = run
        self._start_after = start_after
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
                _seen(line),
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
        for line in self._read(_ResultLine, objects, None if objects is None else self._data(objects)):
            found: list[FindingLine] = []
            if line.rules:
                while ahead is not None and (ahead.key, ahead.version_id) == (line.key, line.version_id):
                    found.append(ahead)
                    ahead = next(findings, None)
            if start is None or line.key > start:
                yield PastObject(line.key, line.version_id, _seen(line), tuple(found))

    def _findings(self, part: Part | None, data: bytes | None) -> Iterator[FindingLine]:
        return self._read(FindingLine, part, data)

    def _read(self, kind: type[T], part: Part | None, data: bytes | None) -> Iterator[T]:
        return iter(()) if part is None else read_lines(kind, data, self.run.store.uri(f"{self.run.path}/{part.path}"))

    def _data(self, part: Part) -> bytes | None:
        """Return the bytes of a part's file; None if the file is missing."""
        if part in self._kept:
            return self._kept.pop(part)
        return self.run.store.get(f"{self.run.path}/{part.path}")
