"""Find the newest report of S3 Inventory that can be used for a target, and sort its rows.

Source of the layout: S3 User Guide, "Locating your inventory list" (storage-inventory-location):
PREFIX/SOURCE-BUCKET/CONFIGURATION/TIME/manifest.json.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final, TypeVar

from msgspec import Struct

from auditor.audit.mixed.data_files import check_files, rows_of
from auditor.audit.mixed.report_origin import ReportOrigin
from auditor.audit.mixed.sorted_rows import SortedRows
from auditor.errors import InventoryError
from auditor.model.target import Target
from auditor.runs.stores.base import Store
from auditor.s3.inventory.facts import FACT_COLUMNS
from auditor.s3.inventory.place import InventoryPlace
from auditor.s3.inventory.report import CHECKSUM, FOLDER, IDENTITY, MANIFEST, InventoryReport, read_manifest
from auditor.s3.inventory.rows import RowReader, Shapes
from auditor.s3.inventory.sorting import SortedLines
from auditor.text import counted, visible

T = TypeVar("T")
log = logging.getLogger(__name__)

MOST_TRIED: Final = 10
"""Largest number of reports that are tried, the newest first."""
LARGEST_MANIFEST: Final = 64 * 1024 * 1024


class FoundReport(Struct, frozen=True):
    """A report whose manifest was read. path, uri, md5: of the manifest."""

    report: InventoryReport
    path: str
    uri: str
    md5: str


class ReportTimes(Struct, frozen=True):
    """The earliest and the latest time that a report may be of, in ISO 8601 in UTC; None for any."""

    oldest: str | None = None
    newest: str | None = None


_ANY_TIME: Final = ReportTimes()


def load_newest(
    store: Store,
    place: InventoryPlace,
    target: Target,
    *,
    times: ReportTimes = _ANY_TIME,
    stopped: Callable[[], bool] = lambda: False,
) -> SortedRows:
    """Find the newest report that can be used for the target, and sort its rows. Blocks, and takes a while.

    store: has the whole bucket of `place`. stopped: returns True once the work is to stop. Raises InventoryError if
    there is no report that can be used, and RunStopped.
    """
    return with_newest(
        store, place, target, times, lambda found, refused: _sorted(store, found, refused, target, stopped)
    )


def with_newest(
    store: Store,
    place: InventoryPlace,
    target: Target,
    times: ReportTimes,
    use: Callable[[FoundReport, tuple[str, ...]], T],
) -> T:
    """Return what `use` makes of the newest report that can be used for the target. Blocks.

    A report that is incomplete, damaged or of no use is refused, and the one before it is tried. use: reads the rows of
    a report; it gets a sentence on each newer one that was refused, and raises InventoryError to refuse this one, too.
    Raises InventoryError if there is no report that can be used.
    """
    refused: list[str] = []
    for path in manifests_at(store, place, target.bucket)[:MOST_TRIED]:
        try:
            return use(read_report(store, path, target, times), tuple(refused))
        except InventoryError as error:
            log.warning("an inventory report is refused: %s", visible(str(error)))
            refused.append(str(error))
    if not refused:
        raise InventoryError(
            f"{place.uri} has no inventory report of the bucket {target.bucket}: name the destination of one with"
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


def check_use(report: InventoryReport, target: Target, name: str, times: ReportTimes) -> None:
    """Raise InventoryError if a report is of no use for an audit of the target."""
    if report.bucket != target.bucket:
        raise InventoryError(f"{name} is a report of the bucket {visible(report.bucket)}, not of {target.bucket}")
    if missing := [column for column in IDENTITY if column not in report.columns]:
        raise InventoryError(f"{name} belongs to a report without {missing[0]}: add this field to its configuration")
    if not set(FACT_COLUMNS).intersection(report.columns):
        raise InventoryError(
            f"{name} belongs to a report without facts: add ObjectAccessControlList to its configuration"
        )
    if target.versions and not report.versions:
        raise InventoryError(f"{name} belongs to a report on current versions only: set IncludedObjectVersions to All")
    if times.oldest is not None and report.created < times.oldest:
        raise InventoryError(f"{name} is from {report.created}, and no fact may be older than {times.oldest}")
    if times.newest is not None and report.created > times.newest:
        raise InventoryError(f"{name} is from {report.created}, which is in the future: check the clocks")


def read_report(store: Store, path: str, target: Target, times: ReportTimes) -> FoundReport:
    """Read the manifest of a report. Raises InventoryError if the report is damaged, or of no use for the target."""
    uri = store.uri(path)
    manifest = _small(store, path)
    if manifest is None:
        raise InventoryError(f"{uri} is gone")
    checksum = _small(store, f"{path.removesuffix(MANIFEST)}{CHECKSUM}")
    report = read_manifest(manifest, checksum, _folder(path), uri)
    check_use(report, target, uri, times)
    check_files(report, path, uri)
    return FoundReport(report, path, uri, hashlib.md5(manifest, usedforsecurity=False).hexdigest())


def _small(store: Store, path: str) -> bytes | None:
    pieces = store.stream(path)
    if pieces is None:
        return None
    data = bytearray()
    for piece in pieces:
        data += piece
        if len(data) > LARGEST_MANIFEST:
            raise InventoryError(f"{store.uri(path)} is larger than a manifest can be, so it is damaged")
    return bytes(data)


def _sorted(
    store: Store, found: FoundReport, refused: tuple[str, ...], target: Target, stopped: Callable[[], bool]
) -> SortedRows:
    report, shapes = found.report, Shapes()
    rows = RowReader(report, target, shapes, found.uri)
    with ExitStack() as stack:
        lines = stack.enter_context(SortedLines())
        for file in report.files:
            lines.add(rows.lines(rows_of(store, file, report, stopped)))
        stack.pop_all()
    log.info("the inventory report of %s has %s", report.created, counted(rows.number, "row"))
    origin = ReportOrigin(found.uri, report.created, refused)
    return SortedRows(origin, lines, shapes.all(), versions=target.versions)
