"""Find the facts of listed objects in the sorted rows of an S3 Inventory report, as a stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

from auditor.model.object import ObjectRef
from auditor.s3.inventory.facts import InventoryFacts, Shape, facts_of
from auditor.s3.inventory.rows import NO_SHAPE, NULL, InventoryRow, decode_row, encode_key

MOST_VERSIONS: Final = 50_000
"""Largest number of rows of one key that are held at once. The facts of further versions count as missing."""


class Match(StrEnum):
    """The answer of a report about a listed object."""

    FOUND = "found"
    MISSING = "missing"
    """The report has no row of the object version."""
    CHANGED = "changed"
    """The row has another ETag, size or time: the object was written again."""
    CONTRADICTED = "contradicted"
    """The report has two rows of the object version that differ, or one that is malformed."""


class InventoryLookup:
    """Finds the facts of objects that are asked for in the order of the listing.

    lines: the sorted lines of the rows (rows.py). shapes: the shapes of the rows, by number. versions: True if the
    listing is one of versions. most_versions: the largest number of rows of one key that are held. matches: the number
    of objects by Match.
    """

    def __init__(
        self,
        lines: Iterator[bytes],
        shapes: Sequence[Shape],
        *,
        versions: bool,
        most_versions: int = MOST_VERSIONS,
    ) -> None:
        self._most_versions = most_versions
        self._lines = lines
        self._shapes = shapes
        self._facts: dict[int, InventoryFacts] = {}
        self._versions = versions
        self._next = next(lines, None)
        self._key: str | None = None
        self._rows: dict[str, InventoryRow | None] = {}
        self.matches: Counter[Match] = Counter()

    def facts_of_page(self, refs: Sequence[ObjectRef]) -> list[InventoryFacts | None]:
        """Return the facts of each object of a page of the listing; None where the report has none. The keys must come
        in the order of the listing. Reads the sorted lines up to the last key, and so may block.
        """
        return [self._facts_of(ref) for ref in refs]

    def _facts_of(self, ref: ObjectRef) -> InventoryFacts | None:
        if ref.key != self._key:
            self._load(ref.key)
        match, row = self._match(ref)
        self.matches[match] += 1
        if row is None or row.shape == NO_SHAPE:
            return None
        found = self._facts.get(row.shape)
        if found is None:
            found = self._facts[row.shape] = facts_of(self._shapes[row.shape])
        return found

    def _match(self, ref: ObjectRef) -> tuple[Match, InventoryRow | None]:
        version = (ref.version_id or NULL) if self._versions else ""
        if version not in self._rows:
            return Match.MISSING, None
        row = self._rows[version]
        if row is None:
            return Match.CONTRADICTED, None
        same = row.etag == ref.etag and row.size == ref.size and row.last_modified == ref.last_modified[:19]
        return (Match.FOUND, row) if same else (Match.CHANGED, None)

    def _load(self, key: str) -> None:
        """Read the rows of a key, and skip those of the keys before it."""
        self._key, self._rows = key, {}
        begin = encode_key(key)
        line = self._next
        while line is not None and line < begin:
            line = next(self._lines, None)
        before: bytes | None = None
        while line is not None and line.startswith(begin):
            if line != before:
                self._take(line)
            before, line = line, next(self._lines, None)
        self._next = line

    def _take(self, line: bytes) -> None:
        row = decode_row(line)
        version = row.version_id if row is not None else _version_of(line)
        if version in self._rows:
            self._rows[version] = None  # two rows that differ
        elif len(self._rows) < self._most_versions:
            self._rows[version] = row


def _version_of(line: bytes) -> str:
    return line[line.index(b"\0") + 1 :].partition(b",")[0].decode(errors="replace")
