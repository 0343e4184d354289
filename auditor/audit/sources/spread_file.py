"""The file that says how far the rows of an S3 Inventory report are spread over the ranges of a run."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from auditor.errors import OutputError, RunTaken
from auditor.model.json_codec import JsonError, Size
from auditor.runs.paths import run_path
from auditor.runs.run_files import RunFile
from auditor.runs.stores.base import ConditionalStore, Store
from auditor.s3.inventory.facts import FACT_COLUMNS, Shape
from auditor.s3.inventory.report import ReportOrigin

log = logging.getLogger(__name__)

FOLDER: Final = "inventory"
"""The folder below that of a run for the rows of its ranges. It is there while the run lasts."""
NAME: Final = f"{FOLDER}/spread.json"


class SpreadPiece(Struct, frozen=True):
    """A file with rows of one range, in gzip, a row a line, sorted. sha256: of its bytes."""

    name: str
    sha256: str
    lines: Size


class SpreadFile(RunFile, frozen=True, kw_only=True):
    """How far a report is spread: all rows of its first data files, and nothing of the others, are in the pieces."""

    manifest: str
    """The path of the report's manifest in its bucket."""
    md5: str
    """Of the manifest: it names the MD5 of each data file, so that a report with the same one is the same."""
    origin: ReportOrigin
    done: Size
    """Number of data files whose rows are in the pieces."""
    files: Size
    """Number of data files of the report."""
    rows: Size
    """Number of rows of the data files that are done."""
    shapes: tuple[Shape, ...]
    """The shapes of these rows, each at the index of its number."""
    pieces: Mapping[str, tuple[SpreadPiece, ...]]
    """By the ID of a range: its pieces."""

    @property
    def complete(self) -> bool:
        return self.done == self.files

    def check(self) -> None:
        if any(len(shape) != len(FACT_COLUMNS) for shape in self.shapes):
            raise JsonError("are not the cells of rows", "shapes")


class SpreadFolder:
    """The folder with the spread rows of a run. Its methods block. path: of the run folder in its store."""

    def __init__(self, store: Store, path: str, run: str) -> None:
        self._store = store
        self._path = path
        self._run = run
        self._tag: str | None = None

    def load(self) -> SpreadFile | None:
        """Return the file; None if there is none. One that is damaged counts as none: its pieces count for nothing."""
        path = f"{self._path}/{NAME}"
        if isinstance(self._store, ConditionalStore):
            data, self._tag = self._store.get_tagged(path)
        else:
            data = self._store.get(path)
        try:
            found = None if data is None else SpreadFile.from_json(data)
            if found is not None and found.run != self._run:
                raise JsonError("is another run's")
        except JsonError as error:
            log.warning("%s is damaged: %s", self._store.uri(path), error)
            return None
        return found

    def save(self, spread: SpreadFile) -> None:
        """Write the file after load(). Raises RunTaken if another process has written it since."""
        path = f"{self._path}/{NAME}"
        if not isinstance(self._store, ConditionalStore):
            self._store.put(path, spread.to_json())
            return
        self._tag = self._store.put_if(path, spread.to_json(), self._tag)
        if self._tag is None:
            raise RunTaken(f"{self._store.uri(path)} is being written by another process: wait for it, or end it")

    def place(self, name: str) -> str:
        """Return the path of a piece."""
        return f"{self._path}/{FOLDER}/{name}"

    def clear(self) -> None:
        """Delete all files of the folder, also those that no file names."""
        for path in self._store.list(f"{self._path}/{FOLDER}/"):
            self._store.delete(path)


def files_spread(store: Store, bucket: str, run_id: str) -> int:
    """Return the number of data files of the report that are spread so far. Blocks."""
    found = SpreadFolder(store, run_path(bucket, run_id), run_id).load()
    return 0 if found is None else found.done


class RunReport:
    """The report of a run that is summed up. path: of the run folder in its store. Blocks."""

    def __init__(self, store: Store, path: str, run_id: str) -> None:
        self._folder = SpreadFolder(store, path, run_id)
        self._spread = self._folder.load()

    def unseen(self, unreported: int, *, mixed: bool) -> list[str]:
        """Return phrases on what the run did not look at. unreported: Tally.unreported. mixed: True if the run is to
        take facts from a report.
        """
        if self._spread is not None:
            return self._spread.origin.unseen(unreported)
        return [f"what the S3 Inventory report of the run was: {NAME} is gone"] if mixed else []

    def forget(self) -> None:
        """Delete the spread rows, which nothing needs after the run."""
        if self._spread is None:
            return
        try:
            self._folder.clear()
        except OutputError as error:
            log.warning("the inventory report's rows stay in the run folder: %s", error)
