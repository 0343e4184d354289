"""Find the newest report of S3 Inventory that can be used for a target, check its files, and sort its rows.

Source of the layout: S3 User Guide, "Locating your inventory list" (storage-inventory-location):
PREFIX/SOURCE-BUCKET/CONFIGURATION/TIME/manifest.json.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final, Self, TypeVar

from msgspec import Struct

from auditor.audit.sources.parquet_rows import check_parquet, parquet_rows
from auditor.config.settings import Settings
from auditor.errors import InventoryError, OutputError, RunStopped
from auditor.model.dates import seconds_in_utc
from auditor.model.object import CONTENT
from auditor.model.reuse import ACL, ReusePolicy
from auditor.model.target import Target
from auditor.runs.stores import open_store
from auditor.runs.stores.base import Store
from auditor.s3.engines import ASKING
from auditor.s3.inventory.facts import FACT_COLUMNS, Shape
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
    ReportOrigin,
    read_manifest,
)
from auditor.s3.inventory.rows import RowReader, Shapes, csv_rows
from auditor.s3.inventory.sorting import SortedLines
from auditor.text import counted, visible

T = TypeVar("T")
log = logging.getLogger(__name__)

MOST_TRIED: Final = 10
"""Largest number of reports that are tried, the newest first."""
LARGEST_MANIFEST: Final = 64 * 1024 * 1024
SKEW: Final = 900.0
"""Seconds by which a report may be of later than the present time: the clock of the auditor may be so much behind that
of S3, which refuses a request with a larger difference (RequestTimeTooSkewed, S3 API reference, error responses)."""
_CHECK_EVERY: Final = 4096
"""Number of rows after which the reading looks if it is to stop."""


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


class ReportLimits(Struct, frozen=True):
    """The largest ages of a report's facts, in seconds; None for no limit."""

    acl: float | None = None
    head: float | None = None

    @classmethod
    def of(cls, keep: ReusePolicy | None) -> ReportLimits:
        """Return the limits that the setting `keep` gives. The shortest limit of a changing member of HEAD counts for
        all that a report has of it.
        """
        limits = {} if keep is None else keep.limits
        heads = [limit for name, limit in limits.items() if name not in (ACL, CONTENT)]
        return cls(limits.get(ACL), min(heads, default=None))

    @property
    def longest(self) -> float | None:
        """The age past which a report has nothing to give; None if there is none."""
        return None if self.acl is None or self.head is None else max(self.acl, self.head)


_ANY_TIME: Final = ReportTimes()


class SortedRows:
    """Sorted rows, in which the facts of listed objects are looked up. Close it, or use it in a `with`."""

    def __init__(self, origin: ReportOrigin, lines: SortedLines, shapes: Sequence[Shape], *, versions: bool) -> None:
        self.origin = origin
        self.lookup = InventoryLookup(lines.sorted(), shapes, versions=versions)
        self._lines = lines

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete the sorted rows."""
        self._lines.close()


def report_times(settings: Settings, now: float) -> ReportTimes:
    """Return the times that a report may be of. now: the present time, in seconds since 1970."""
    longest = ReportLimits.of(settings.keep).longest
    return ReportTimes(None if longest is None else _time(now - longest), _time(now + SKEW))


def _time(seconds: float) -> str:
    return seconds_in_utc(datetime.fromtimestamp(seconds, UTC))


def open_reports(place: InventoryPlace, settings: Settings) -> Store:
    """Open the bucket of the reports, by the credentials that read the audited bucket."""
    return open_store(
        f"s3://{place.bucket}",
        endpoint_url=settings.endpoint_url,
        profile=settings.profile,
        region=settings.region,
        role=settings.role,
        sdk=settings.engine not in ASKING,
        absent="check the destination that --inventory names",
    )


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


def check_files(report: InventoryReport, path: str, name: str) -> None:
    """Raise InventoryError if a report names a file outside the folder of its configuration, two levels above its
    manifest. path: of the manifest. name: its URI.
    """
    configuration = path.rpartition("/")[0].rpartition("/")[0]
    above = configuration.rpartition("/")[0]
    if above and not all(file.key.startswith(f"{above}/") for file in report.files):
        raise InventoryError(f"{name} names a file outside its folder, so it is damaged")


def rows_of(store: Store, file: InventoryFile, report: InventoryReport, stopped: Callable[[], bool]) -> Iterator[Any]:
    """Yield the rows of a data file. Raises InventoryError, at its end too, if its bytes are not those that the
    manifest names, and RunStopped once `stopped` returns True.
    """
    for number, row in enumerate(_rows(store, file, report)):
        if not number % _CHECK_EVERY and stopped():
            raise RunStopped("the audit was stopped while it read the inventory report: nothing was audited; run again")
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
            raise InventoryError(f"{self._name} does not match the MD5 in its manifest, so the report is damaged")
