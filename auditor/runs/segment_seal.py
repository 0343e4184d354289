"""Collect the entries that the seal of a run has of one range: of the parts of this process, and of earlier ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from auditor.runs.ownership import EMPTY_PART
from auditor.runs.parts import KINDS, Part, found_parts, sealed_from_store
from auditor.runs.paths import range_seal_name
from auditor.runs.reading import parse_seal
from auditor.runs.seal import NAME as SEAL
from auditor.runs.seal import Seal, SealedPart, sha256_of, sorted_parts
from auditor.runs.stores.base import Store


class SegmentSeal:
    """The seal of a range, while a process writes it. path: of the run folder in its store.

    All methods but add() block.
    """

    def __init__(self, store: Store, path: str, run_id: str, range_id: str) -> None:
        self._store = store
        self._path = path
        self._run_id = run_id
        self._range_id = range_id
        self._earlier: Sequence[SealedPart] = ()  # what an earlier process sealed
        self._own: list[SealedPart] = []
        self._found: list[SealedPart] | None = None  # what no earlier process sealed
        self._first_part = 0
        self._skipped: Collection[int] = ()

    def begin(self, first_part: int, skipped: Collection[int], *, fresh: bool) -> None:
        """Take over the entries that an earlier process sealed, of the parts that stay.

        first_part: number of the first part that this process writes. skipped: numbers of the parts that were skipped.
        fresh: True if there cannot be an earlier process.
        """
        self._first_part, self._skipped = first_part, skipped
        if not fresh:
            names = (range_seal_name(self._range_id), SEAL)  # of a process that handed on, or that was stopped
            seal = next(filter(None, (parse_seal(self._store.get(f"{self._path}/{name}")) for name in names)), None)
            found = [(Part.parse(one.path), one) for one in seal.parts] if seal else []
            self._earlier = [one for part, one in found if part is not None and self._stays(part)]

    def add(self, parts: Iterable[SealedPart]) -> None:
        """Add the entries of parts that are written."""
        self._own += parts

    def write(self, *, unsealed: bool) -> None:
        """Write the seal of the range. unsealed: True to read the parts that killed processes did not seal; without
        them, the next process reads them.
        """
        parts = [*self._earlier, *(self._unsealed() if unsealed else ()), *self._own]
        seal = Seal(run=self._run_id, parts=sorted_parts(parts))
        self._store.put(f"{self._path}/{range_seal_name(self._range_id)}", seal.to_json())

    def all_parts(self, upto: int) -> tuple[SealedPart, ...]:
        """Return the entries of the parts with numbers below `upto`, with the empty ones in place of those that were
        skipped.
        """
        empty = empty_parts(self._range_id, self._skipped)
        found = sorted_parts([*empty, *self._earlier, *self._unsealed(), *self._own])
        return tuple(one for one in found if (part := Part.parse(one.path)) is not None and part.number < upto)

    def _unsealed(self) -> list[SealedPart]:
        """Read the parts that earlier processes wrote and did not seal before they were killed. Return their
        entries.
        """
        if not self._first_part or self._found is not None:
            return self._found or []
        known = {one.path for one in self._earlier}
        parts = [part for part in found_parts(self._store, self._path) if self._stays(part) and part.path not in known]
        self._found = [sealed_from_store(self._store, self._path, part) for part in parts]
        return self._found

    def _stays(self, part: Part) -> bool:
        """True if an earlier process wrote this part, and the part has not been skipped."""
        before = part.range_id == self._range_id and part.number < self._first_part
        return before and part.number not in self._skipped


def empty_parts(range_id: str, skipped: Iterable[int]) -> list[SealedPart]:
    """Return the entries of the empty files that stand in the place of the parts with these numbers."""
    paths = [Part(range_id, number, kind).path for number in skipped for kind in KINDS]
    size, digest = len(EMPTY_PART), sha256_of(EMPTY_PART)
    return [SealedPart(path=one, first=None, last=None, lines=0, bytes=size, sha256=digest) for one in paths]
