"""Collect the entries of a run's seal: of its files, of the parts of this process, and of those of earlier ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from auditor.runs.parts import Part, found_parts, sealed_from_store
from auditor.runs.paths import seal_name
from auditor.runs.reading import read_seal
from auditor.runs.seal import NAME as SEAL
from auditor.runs.seal import Link, Seal, SealedPart, sha256_of, sorted_parts
from auditor.runs.stores.base import Store


class FolderSeal:
    """The seal of a run, or of one of its ranges, while a process writes the folder. path: of the folder in its store.

    begin(), write() and finish() block; the others are cheap.
    """

    def __init__(self, store: Store, path: str, run_id: str, range_id: str) -> None:
        self._store = store
        self._path = path
        self._run_id = run_id
        self._range_id = range_id
        self._earlier: Sequence[SealedPart] = ()  # what an earlier process sealed
        self._own: list[SealedPart] = []
        self._files: dict[str, str] = {}
        self._first_part = 0
        self._skipped: Collection[int] = ()

    def begin(self, first_part: int, skipped: Collection[int], *, fresh: bool) -> None:
        """Take over the entries that an earlier process sealed, of the parts that stay.

        first_part: number of the first part that this process writes. skipped: numbers of the parts that were skipped.
        fresh: True if there cannot be an earlier process.
        """
        self._first_part, self._skipped = first_part, skipped
        if not fresh:
            seal = read_seal(self._store, self._path, self._range_id)
            found = [(Part.parse(one.path), one) for one in seal.parts] if seal else []
            self._earlier = [one for part, one in found if part is not None and self._stays(part)]

    def note(self, name: str, data: bytes) -> None:
        """Note the bytes of a file besides the parts."""
        self._files[name] = sha256_of(data)

    def add(self, parts: Iterable[SealedPart], files: Mapping[str, str] | None = None) -> None:
        """Add the entries of parts that are written. files: the SHA-256 of further files by their names."""
        self._own += parts
        self._files |= files or {}

    def write(self, *, unsealed: bool) -> None:
        """Write the seal of an unfinished run, or of a range. unsealed: True to read the parts that killed processes
        did not seal; without them, the next process reads them.
        """
        parts = [*self._earlier, *(self._unsealed() if unsealed else ()), *self._own]
        seal = Seal(run=self._run_id, files=self._files, parts=sorted_parts(parts))
        self._store.put(f"{self._path}/{seal_name(self._range_id)}", seal.to_json())

    def finish(self, previous: Link | None) -> str:
        """Write the seal of a run that ends, and return its SHA-256. previous: the run before it."""
        parts = sorted_parts([*self._earlier, *self._unsealed(), *self._own])
        seal = Seal(run=self._run_id, previous=previous, files=self._files, parts=parts).to_json()
        self._store.put(f"{self._path}/{SEAL}", seal)
        return sha256_of(seal)

    def _unsealed(self) -> list[SealedPart]:
        """Read the parts that earlier processes wrote and did not seal before they were killed. Return their
        entries.
        """
        if not self._first_part:
            return []
        known = {one.path for one in self._earlier}
        parts = [part for part in found_parts(self._store, self._path) if self._stays(part) and part.path not in known]
        return [sealed_from_store(self._store, self._path, part) for part in parts]

    def _stays(self, part: Part) -> bool:
        """True if an earlier process wrote this part, and the part has not been skipped."""
        before = part.range_id == self._range_id and part.number < self._first_part
        return before and part.number not in self._skipped
