"""Find the newest report of S3 Inventory that can be used for a target, and sort its rows.

Source of the layout: S3 User Guide, "Locating your inventory list" (storage-inventory-location):
PREFIX/SOURCE-BUCKET/CONFIGURATION/TIME/manifest.json.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final, Self

from auditor.errors import InventoryError, OutputError, RunStopped
from auditor.model.target import Target
from auditor.runs.stores.base import Store
from auditor.s3.inventory.csv_rows import csv_rows
from auditor.s3.inventory.facts import FACT_COLUMNS
from auditor.s3.inventory.fields import PARQUET
from auditor.s3.inventory.lookup import InventoryLookup
from auditor.s3.inventory.place import InventoryPlace
from auditor.s3.inventory.report import (
    CHECKSUM,
    FOLDER,
    IDENTITY,
    MANIFEST,
    InventoryFile,
    InventoryReport,
    read_manifest,
)
from auditor.s3.inventory.rows import RowReader, Shapes
from auditor.s3.inventory.sorting import SortedLines
from auditor.text import counted, visible

log = logging.getLogger(__name__)

MOST_TRIED: Final = 10
"""Largest number of reports that are tried, the newest first."""
LARGEST_MANIFEST: Final = 64 * 1024 * 1024
_CHECK_EVERY: Final = 4096
"""Number of rows after which the reading looks if it is to stop."""


class LoadedInventory:
    """The rows of a report that concern a target, sorted. Close it, or use it in a `with`.

    uri: of the report's manifest. rows: number of rows of the whole report. refused: one sentence on each newer report
    that was refused.
    """

    def __init__(
        self,
        report: InventoryReport,
        uri: str,
        lines: SortedLines,
        shapes: Shapes,
        rows: int,
        refused: tuple[str, ...],
        *,
        versions: bool,
    ) -> None:
        self.report = report
        self.uri = uri
        self.rows = rows
        self.refused = refused
        self.lookup = InventoryLookup(lines.sorted(), shapes.all(), versions=versions)
        self._lines = lines

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete the sorted rows."""
        self._lines.close()


def load_newest(
    store: Store,
    place: InventoryPlace,
    target: Target,
    *,
    oldest: str | None = None,
    newest: str | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> LoadedInventory:
    """Find the newest report that can be used for the target, and sort its rows. Blocks, and takes a while.

    store: has the whole bucket of `place`. oldest, newest: the earliest and the latest time of a report, in ISO 8601 in
    UTC; None for any. stopped: returns True once the work is to stop. A report that is incomplete, damaged or of no use
    is refused, and the one before it is tried. Raises InventoryError if there is none that can be used, and RunStopped.
    """
    refused: list[str] = []
    for path in manifests_at(store, place, target.bucket)[:MOST_TRIED]:
        try:
            report = _read_report(store, path)
            check_use(report, target, store.uri(path), oldest, newest)
            return _sorted(store, path, report, target, stopped, tuple(refused))
        except InventoryError as error:
            log.warning("an inventory report is refused: %s", visible(str(error)))
            refused.append(str(error))
    if not refused:
        raise InventoryError(
            f"{place.uri} has no inventory report of the bucket {target.bucket}: name the destination of one by"
            f" --inventory (`auditor inventory s3://{target.bucket}` helps to set it up), or audit with --source live"
        )
    raise InventoryError(
        f"{place.uri} has no inventory report of the bucket {target.bucket} that can be used: {refused[0]}:"
        " wait for the next report, or audit with --source live"
    )


def manifests_at(store: Store, place: InventoryPlace, bucket: str) -> list[str]:
    """Return the paths of the manifests of a bucket's reports, the newest first.

    place: the destination's prefix, or a folder below it: the bucket's, a configuration's, or that of one report.
    """
    prefix = f"{place.prefix}/" if place.prefix else ""
    found = _manifests(store, f"{prefix}{bucket}/") or _manifests(store, prefix)
    return sorted(found, key=lambda path: (_folder(path), path), reverse=True)


def _manifests(store: Store, prefix: str) -> list[str]:
    return [path for path in store.list(prefix) if path.endswith(f"/{MANIFEST}") and FOLDER.fullmatch(_folder(path))]


def _folder(path: str) -> str:
    return path.rpartition("/")[0].rpartition("/")[2]


def check_use(report: InventoryReport, target: Target, name: str, oldest: str | None, newest: str | None) -> None:
    """Raise InventoryError if a report is of no use for an audit of the target."""
    if report.bucket != target.bucket:
        raise InventoryError(f"{name} is a report of the bucket {visible(report.bucket)}, not of {target.bucket}")
    if missing := [column for column in IDENTITY if column not in report.columns]:
        raise InventoryError(f"{name} is of a report without {missing[0]}: add this field to its configuration")
    if not set(FACT_COLUMNS).intersection(report.columns):
        raise InventoryError(f"{name} is of a report without facts: add ObjectAccessControlList to its configuration")
    if target.versions and not report.versions:
        raise InventoryError(f"{name} is of a report on current versions: set IncludedObjectVersions to All")
    if oldest is not None and report.created < oldest:
        raise InventoryError(f"{name} is of {report.created}, and no fact may be older than of {oldest}")
    if newest is not None and report.created > newest:
        raise InventoryError(f"{name} is of {report.created}, which is still to come: see which clock is wrong")


def _read_report(store: Store, path: str) -> InventoryReport:
    manifest = _small(store, path)
    if manifest is None:
        raise InventoryError(f"{store.uri(path)} is gone")
    checksum = _small(store, f"{path.removesuffix(MANIFEST)}{CHECKSUM}")
    return read_manifest(manifest, checksum, _folder(path), store.uri(path))


def _small(store: Store, path: str) -> bytes | None:
    pieces = store.stream(path)
    if pieces is None:
        return None
    data = bytearray()
    for piece in pieces:
        data += piece
        if len(data) > LARGEST_MANIFEST:
            raise InventoryError(f"{store.uri(path)} is larger than any manifest, so it is damaged")
    return bytes(data)


def _sorted(
    store: Store,
    path: str,
    report: InventoryReport,
    target: Target,
    stopped: Callable[[], bool],
    refused: tuple[str, ...],
) -> LoadedInventory:
    shapes = Shapes()
    uri = store.uri(path)
    rows = RowReader(report, target, shapes, uri)
    inside = _folder_of_reports(path)
    with ExitStack() as stack:
        lines = stack.enter_context(SortedLines())
        for file in report.files:
            if not file.key.startswith(inside):
                raise InventoryError(f"{uri} names a file outside its own folder, so it is damaged")
            lines.add(rows.lines(_until(stopped, _rows(store, file, report))))
        stack.pop_all()
    log.info("the inventory report of %s has %s", report.created, counted(rows.number, "row"))
    return LoadedInventory(report, uri, lines, shapes, rows.number, refused, versions=target.versions)


def _folder_of_reports(path: str) -> str:
    """Return the beginning of the keys of all files of a configuration: the folder two levels above the manifest."""
    configuration = path.rpartition("/")[0].rpartition("/")[0]
    above = configuration.rpartition("/")[0]
    return f"{above}/" if above else ""


def _until(stopped: Callable[[], bool], rows: Iterator[Any]) -> Iterator[Any]:
    for number, row in enumerate(rows):
        if not number % _CHECK_EVERY and stopped():
            raise RunStopped("the audit was stopped while it read the inventory report: nothing was audited, run again")
        yield row


def _rows(store: Store, file: InventoryFile, report: InventoryReport) -> Iterator[Any]:
    name = store.uri(file.key)
    pieces = store.stream(file.key)
    if pieces is None:
        raise InventoryError(f"{name} does not exist, so the report is incomplete")
    checked = _Checked(pieces, file, name)
    if report.form == PARQUET:
        yield from _parquet(checked, report, name)
    else:
        yield from csv_rows(iter(checked), name)
        checked.finish()


def _parquet(checked: _Checked, report: InventoryReport, name: str) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a Parquet file, which is read from a copy: its footer is at its end."""
    from auditor.audit.mixed.parquet_rows import check_parquet, parquet_rows

    check_parquet()
    try:
        copy = NamedTemporaryFile(prefix="auditor-", suffix=".parquet")  # noqa: SIM115 - closed below
    except OSError as error:
        raise _no_room(error) from error
    with copy:
        for piece in checked:
            try:
                copy.write(piece)
            except OSError as error:
                raise _no_room(error) from error
        copy.flush()
        checked.finish()
        yield from parquet_rows(Path(copy.name), report.columns, name)


def _no_room(error: OSError) -> OutputError:
    return OutputError(
        f"a temporary file for the inventory cannot be written ({os.strerror(error.errno or 0)}): free some space, or"
        " set TMPDIR"
    )


class _Checked:
    """The bytes of a data file. finish() raises InventoryError if they are not those that the manifest names."""

    def __init__(self, pieces: Iterator[bytes], file: InventoryFile, name: str) -> None:
        self._pieces = pieces
        self._file = file
        self._name = name
        self._digest = hashlib.md5(usedforsecurity=False)

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self._digest.update(piece)
            yield piece

    def finish(self) -> None:
        for piece in self._pieces:
            self._digest.update(piece)
        if self._digest.hexdigest() != self._file.md5:
            raise InventoryError(f"{self._name} has not the MD5 that its manifest tells, so the report is damaged")
