"""Read the results of a run's objects in key order. Only the members of a line that results need become values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import takewhile
from typing import Generic, TypeVar

from auditor.model.object import ObjectVersion
from auditor.model.run_lines import FindingLine, ObjectLine, PastObject, Seen, UndecidedLine
from auditor.runs.parts import Part, read_lines
from auditor.runs.reading import RunReader

T = TypeVar("T")
L = TypeVar("L", bound=FindingLine | UndecidedLine | ObjectVersion)


class _ResultLine(Seen, frozen=True, kw_only=True):
    """The members of an object's line that two runs compare."""

    key: str
    version_id: str | None


def seen_in(line: Seen | ObjectLine) -> Seen:
    """Return the results of an object, as its line has them."""
    return Seen(line.outcome, line.verdict, line.rules, line.reasons, line.since, line.exception)


class LinesAhead(Generic[L]):
    """Lines of a part that are taken with the objects to which they belong."""

    def __init__(self, lines: Iterator[L]) -> None:
        self._lines = lines
        self._next = next(lines, None)

    @property
    def ended(self) -> bool:
        return self._next is None

    def take(self, belongs: Callable[[L], bool]) -> list[L]:
        """Return the next lines that belong together."""
        found: list[L] = []
        while self._next is not None and belongs(self._next):
            found.append(self._next)
            self._next = next(self._lines, None)
        return found

    def of(self, key: str, version_id: str | None) -> list[L]:
        """Return the next lines that are on this object."""
        return self.take(lambda one: one.key == key and one.version_id == version_id)


class RunResults:
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
        part = self._by_part[0][1].get("findings") if self._by_part else None
        if part is None:
            return []
        data = self._data(part)
        if self._start_after is None:
            self._kept[part] = data
        return list(takewhile(lambda line: line.key is None, read_lines(FindingLine, data, self._uri(part))))

    def objects(self) -> Iterator[PastObject]:
        """Yield all objects in key order."""
        for _, files in self.run.parts_after(self._by_part, self._start_after):
            yield from self._part(files)

    def of_key(self, key: str) -> list[PastObject]:
        """Return the objects with this key: none, one, or one for each version that the run lists."""
        lines = self.run.of_key(key)
        parts = self.run.parts_with(key, "findings") if any(line.rules for line in lines) else ()
        findings = [one for part in parts for one in self._lines(FindingLine, part) if one.key == key]
        mine = ([one for one in findings if one.version_id == line.version_id] for line in lines)
        return [
            PastObject(key, line.version_id, seen_in(line), tuple(found))
            for line, found in zip(lines, mine, strict=True)
        ]

    def _part(self, files: dict[str, Part]) -> Iterator[PastObject]:
        start = self._start_after
        findings = LinesAhead(self._lines(FindingLine, files.get("findings")))
        findings.take(lambda one: one.key is None or (start is not None and one.key <= start))
        for line in self._lines(_ResultLine, files.get("objects")):
            found = findings.of(line.key, line.version_id) if line.rules else []
            if start is None or line.key > start:
                yield PastObject(line.key, line.version_id, seen_in(line), tuple(found))

    def _lines(self, kind: type[T], part: Part | None) -> Iterator[T]:
        return iter(()) if part is None else read_lines(kind, self._data(part), self._uri(part))

    def _uri(self, part: Part) -> str:
        return self.run.store.uri(f"{self.run.path}/{part.path}")

    def _data(self, part: Part) -> bytes | None:
        """Return the bytes of a part's file; None if the file is missing."""
        if part in self._kept:
            return self._kept.pop(part)
        return self.run.store.get(f"{self.run.path}/{part.path}")
