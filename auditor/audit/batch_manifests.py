"""Write the batch manifests of a run over as many processes as it takes, and note how many are written."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final

from auditor.aws.plain import partition_of
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.errors import RunStopped
from auditor.hashing.batch.job import FOLDER, MOST_ROWS, JobOwner, write_batch
from auditor.model.json_codec import JsonError, Size
from auditor.model.object import ObjectVersion
from auditor.model.target import Target
from auditor.runs.parts import Part
from auditor.runs.reading import RunReader
from auditor.runs.run_files import JsonFile, SealedPart
from auditor.text import counted

_NAME: Final = f"{FOLDER}/progress.json"
_SPARE: Final = 2.0
"""A manifest is begun if the time left is so many times what the slowest one took."""


class _Note(JsonFile, frozen=True, kw_only=True):
    """The number of manifests that are written. parts: a digest of the parts whose objects they have. rows: the number
    of objects in each.
    """

    parts: str
    rows: Size
    written: Size


class BatchManifests:
    """Writes the manifests and jobs for the objects that a run leaves to S3 Batch Operations. Its methods block.

    A note in the run folder says how many manifests are written, and of which parts. The next process continues after
    them, at the part that has the next row by the numbers of lines in the seals. Other parts begin anew.

    parts: all parts of the run, in order. time_left: returns the seconds that the process still has. rows: number of
    objects in a manifest; None for MOST_ROWS.
    """

    def __init__(
        self,
        run: RunReader,
        target: Target,
        parts: Sequence[SealedPart],
        *,
        time_left: Callable[[], float] = lambda: math.inf,
        rows: int | None = None,
    ) -> None:
        self._run = run
        self._store = run.store
        self._target = target
        self._parts = [one for one in parts if one.path.startswith("routed/") and one.lines]
        self._time_left = time_left
        self._rows = rows or MOST_ROWS
        self._path = f"{run.path}/{_NAME}"
        self._of = hashlib.sha256("".join(one.sha256 for one in self._parts).encode()).hexdigest()
        self._total = -(-sum(one.lines for one in self._parts) // self._rows)
        self._slowest = 0.0
        self._began = 0.0

    def write(self, places: Resources, settings: Settings, region: str | None, account: str | None) -> None:
        """Write the manifests that are not written yet, into the run folder, or under its path into the place for
        manifests. account: the caller's 12-digit account; None if unknown.

        Raises RunStopped if the time does not suffice for the next one: another call continues.
        """
        written, target = self._written(), self._target
        self._began = time.monotonic()
        write_batch(
            places.manifests or places.store,
            self._run.path,
            self._objects(written * self._rows),
            bucket=target.bucket,
            run_id=self._run.run_id,
            versions=target.versions,
            algorithms=settings.algorithms,
            owner=JobOwner(partition=partition_of(region), account=account, role=settings.batch_role),
            most_rows=self._rows,
            written=written,
            noted=self._note,
        )

    def forget(self) -> None:
        """Delete the note, once the run has ended. One manifest needs none."""
        if self._total > 1:
            self._store.delete(self._path)

    def _written(self) -> int:
        """Return the number of manifests that are written. A note on other parts, or a damaged one, counts as none."""
        data = self._store.get(self._path) if self._total > 1 else None
        try:
            note = None if data is None else _Note.from_json(data)
        except JsonError:
            return 0
        return note.written if note is not None and (note.parts, note.rows) == (self._of, self._rows) else 0

    def _note(self, number: int) -> None:
        if self._total > 1:
            self._store.put(self._path, _Note(parts=self._of, rows=self._rows, written=number).to_json())
        now = time.monotonic()
        self._slowest, self._began = max(self._slowest, now - self._began), now
        total = self._total
        if number < total and self._time_left() < _SPARE * self._slowest:
            raise RunStopped(
                f"{number:,} of {counted(total, 'batch manifest')} of run {self._run.run_id} are written: the next call"
                " continues"
            )

    def _objects(self, first: int) -> Iterator[ObjectVersion]:
        """Yield the objects of the manifests from the row `first` on, a number from 0. Parts before it are not read."""
        for one in self._parts:
            if first >= one.lines:
                first -= one.lines
                continue
            yield from islice(self._run.part(ObjectVersion, Part.parse(one.path)), first, None)
            first = 0
