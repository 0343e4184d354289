"""Spread the rows of an S3 Inventory report over the ranges of a run: the report is read once, each range its own rows.

The data files are read one after the other. Their rows are held in memory by range, up to a limit, and are then written
as one piece for each range. A piece counts once spread.json names it, and that is written after whole data files only,
so that a killed process loses nothing but time, and no piece of a file that was not read and checked to its end counts.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import logging
import secrets
import sys
import time
import zlib
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.audit.run_context import RunContext
from auditor.audit.sources.inventory import EmptyFacts, ReportFacts
from auditor.audit.sources.inventory_reports import (
    FoundReport,
    ReportTimes,
    SortedRows,
    open_reports,
    read_report,
    report_times,
    rows_of,
    with_newest,
)
from auditor.audit.sources.spread_file import NAME, SpreadFile, SpreadFolder, SpreadPiece
from auditor.audit.sources.walk import FactSource
from auditor.config.settings import Settings
from auditor.errors import InventoryError, RunStopped
from auditor.model.target import Target
from auditor.runs.parts import packed_lines
from auditor.runs.paths import run_path
from auditor.runs.run_files import RunPlan
from auditor.runs.stores.base import LockingStore, Store
from auditor.s3.inventory.place import InventoryPlace
from auditor.s3.inventory.report import ReportOrigin
from auditor.s3.inventory.rows import PieceReader, RowReader, Shapes, encode_key
from auditor.s3.inventory.sorting import SortedLines
from auditor.text import counted, visible

log = logging.getLogger(__name__)

MEMORY: Final = 96 * 1024 * 1024
"""Bytes of memory of the rows that are held: with more of it the pieces are fewer, and each costs a PUT and a GET."""
SAVE_SECONDS: Final = 30.0
"""Seconds after which the rows of the data files so far are saved: a killed process loses no more than these."""
LOCK: Final = "inventory"
"""The name of the lock that the spreading process holds in a directory."""
_OVERHEAD: Final = 41
"""Bytes of memory of a line beside its own: those of the object, and of its place in a list (CPython)."""
_LEVEL: Final = 1
"""Compression of the pieces: they are read once or a few times."""
_ABOVE: Final = b"\xff"
"""A byte above all that follow the key in a line."""


def spread_report(
    place: InventoryPlace, settings: Settings, store: Store, plan: RunPlan, stopped: Callable[[], bool]
) -> None:
    """Spread the newest report over the ranges of a run, or continue it. Blocks, and takes a while.

    place: of the reports. store: has the run folder. stopped: returns True once the work is to stop. Raises
    InventoryError if there is no report that can be used, and RunStopped after a stop; the next call then continues.
    """
    times = report_times(settings, time.time())
    try:
        with open_reports(place, settings) as reports:
            spread = spread_newest(reports, place, store, plan, times, stopped)
    except RunStopped as error:
        raise RunStopped(
            f"run {plan.run} was stopped while it read the inventory report: resume it with --resume {plan.run}"
        ) from error
    log.info("facts come from %s, of %s", visible(spread.origin.uri), spread.origin.created)


def spread_newest(
    reports: Store,
    place: InventoryPlace,
    store: Store,
    plan: RunPlan,
    times: ReportTimes,
    stopped: Callable[[], bool] = lambda: False,
    *,
    memory: int = MEMORY,
    save_seconds: float = SAVE_SECONDS,
) -> SpreadFile:
    """Spread the newest report that can be used for the plan's target, or continue it. Blocks, and takes a while.

    reports: has the whole bucket of `place`. store: has the run folder. A report that was begun is gone on with as long
    as it is there unchanged. Raises InventoryError if there is no report that can be used, RunStopped once `stopped`
    returns True, and RunTaken if another process spreads it.
    """
    path = run_path(plan.target.bucket, plan.run)
    with ExitStack() as stack:
        if isinstance(store, LockingStore):
            stack.callback(store.hold(path, LOCK))
        folder = SpreadFolder(store, path, plan.run)
        begun = folder.load()
        if begun is not None and begun.complete:
            return begun

        def spread(found: FoundReport, begun: SpreadFile) -> SpreadFile:
            work = _Spreading(reports, store, folder, plan, found, begun, memory, save_seconds)
            return work.run(stopped)

        if begun is not None:
            try:
                found = read_report(reports, begun.manifest, plan.target, times)
                if found.md5 == begun.md5:
                    return spread(found, begun)
            except InventoryError as error:
                log.warning("the audit gives up the inventory report that it began with: %s", visible(str(error)))
        return with_newest(
            reports, place, plan.target, times, lambda found, refused: spread(found, _nothing(plan, found, refused))
        )


def _nothing(plan: RunPlan, found: FoundReport, refused: tuple[str, ...]) -> SpreadFile:
    return SpreadFile(
        run=plan.run,
        manifest=found.path,
        md5=found.md5,
        origin=ReportOrigin(found.uri, found.report.created, refused),
        done=0,
        files=len(found.report.files),
        rows=0,
        shapes=(),
        pieces={},
    )


class _Whole(Struct, frozen=True):
    """The state at the begin of a data file. number: of writes. lengths: numbers of the held rows, by range."""

    number: int
    rows: int
    lengths: list[int]


class _Spreading:
    """Spreads one report. begun: how far it is."""

    def __init__(
        self,
        reports: Store,
        store: Store,
        folder: SpreadFolder,
        plan: RunPlan,
        found: FoundReport,
        begun: SpreadFile,
        memory: int,
        save_seconds: float,
    ) -> None:
        self._reports = reports
        self._store = store
        self._folder = folder
        self._found = found
        self._spread = begun
        self._memory = memory
        self._save_seconds = save_seconds
        self._shapes = Shapes(begun.shapes)
        self._rows = RowReader(found.report, plan.target, self._shapes, found.uri, begun.rows)
        self._ids = [one.id for one in plan.ranges]
        self._ends = [encode_key(one.stop_at or "") + _ABOVE for one in plan.ranges[:-1]]
        self._lines: list[list[bytes]] = [[] for _ in plan.ranges]
        self._bytes = 0
        self._pieces = {name: list(pieces) for name, pieces in begun.pieces.items()}
        self._number = 0
        self._process = secrets.token_hex(4)  # no piece of one process takes the place of another one's

    def run(self, stopped: Callable[[], bool]) -> SpreadFile:
        report, saved = self._found.report, time.monotonic()
        for number, file in enumerate(report.files[self._spread.done :], self._spread.done + 1):
            whole = _Whole(self._number, self._rows.number, [len(lines) for lines in self._lines])
            try:
                self._add(self._rows.lines(rows_of(self._reports, file, report, stopped)))
            except RunStopped:
                self._save_whole(number - 1, whole)
                raise
            if time.monotonic() - saved >= self._save_seconds:
                self._save(number)
                saved = time.monotonic()
        self._save(len(report.files))
        log.info("the inventory report of %s has %s", report.created, counted(self._rows.number, "row"))
        return self._spread

    def _add(self, lines: Iterable[bytes]) -> None:
        ends, held = self._ends, self._lines
        for line in lines:
            held[bisect_left(ends, line)].append(line)
            self._bytes += len(line) + _OVERHEAD
            if self._bytes >= self._memory:
                self._write()

    def _write(self) -> None:
        """Write the rows that are held, a piece for each range."""
        for place, (range_id, lines) in enumerate(zip(self._ids, self._lines, strict=True)):
            if not lines:
                continue
            lines.sort()
            data = gzip.compress(b"\n".join(lines) + b"\n", _LEVEL, mtime=0)
            name = f"{range_id}-{self._process}-{self._number:05}.gz"
            self._store.put(self._folder.place(name), data)
            piece = SpreadPiece(name, hashlib.sha256(data).hexdigest(), len(lines))
            self._pieces.setdefault(range_id, []).append(piece)
            self._lines[place] = []
        self._number += 1
        self._bytes = 0

    def _save_whole(self, done: int, whole: _Whole) -> None:
        """Save the rows of the whole data files, without those of the one that is in work, unless the memory has
        overflowed since its begin: the next process then reads again what was read since the last save.
        """
        if whole.number != self._number:
            return
        for lines, length in zip(self._lines, whole.lengths, strict=True):
            del lines[length:]
        self._rows.number = whole.rows
        self._save(done)

    def _save(self, done: int) -> None:
        """Make all rows of the first data files count. done: the number of these files."""
        self._write()
        self._spread = replace(
            self._spread,
            done=done,
            rows=self._rows.number,
            shapes=tuple(self._shapes.all()),
            pieces={name: tuple(pieces) for name, pieces in self._pieces.items()},
        )
        self._folder.save(self._spread)


@asynccontextmanager
async def open_range_rows(run: RunContext, range_id: str) -> AsyncIterator[FactSource]:
    """Load the rows of a range, and yield the source of their facts. If a row is lost, each object is read by calls.

    Raises OutputError if the run folder cannot be read.
    """
    store, stop = run.places.store, run.outer_stop
    try:
        rows = await asyncio.to_thread(load_range, store, run.run_id, range_id, run.remaining, lambda: bool(stop))
    except InventoryError as error:
        log.warning("range %s: each object is read with calls, because %s", range_id, visible(str(error)))
        rows = None
    if rows is None:
        yield EmptyFacts()
        return
    try:
        yield ReportFacts(rows, run)
    finally:
        await asyncio.to_thread(rows.close)


def load_range(
    store: Store, run_id: str, range_id: str, target: Target, stopped: Callable[[], bool] = lambda: False
) -> SortedRows | None:
    """Return the rows of a range, sorted; None after a stop. Raises InventoryError if they are not whole. Blocks."""
    folder = SpreadFolder(store, run_path(target.bucket, run_id), run_id)
    spread = folder.load()
    if spread is None or not spread.complete:
        raise InventoryError(f"the run has no whole {NAME}")
    begin = b"" if target.start_after is None else encode_key(target.start_after)
    with ExitStack() as stack:
        lines = stack.enter_context(SortedLines())
        for piece in spread.pieces.get(range_id, ()):
            if stopped():
                return None
            lines.add(_after(begin, _lines_of(store, folder.place(piece.name), piece)))
        stack.pop_all()
    return SortedRows(spread.origin, lines, spread.shapes, versions=target.versions)


def _after(begin: bytes, lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines of keys after one. begin: the beginning of its own lines; b"" to yield all lines."""
    if not begin:
        return lines
    return (line for line in lines if line > begin and not line.startswith(begin))


def _lines_of(store: Store, path: str, piece: SpreadPiece) -> Iterator[bytes]:
    """Yield the lines of a piece. Raises InventoryError, at the end too, if it is not the one that was written."""
    name, digest, number = store.uri(path), hashlib.sha256(), 0
    data = store.stream(path)
    if data is None:
        raise InventoryError(f"{name} is gone")

    def checked() -> Iterator[bytes]:
        for one in data:
            digest.update(one)
            yield one

    source = checked()
    try:
        for line in packed_lines(io.BufferedReader(PieceReader(source)), sys.maxsize):
            number += 1
            yield line.rstrip(b"\n")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InventoryError(f"{name} is damaged ({error})") from error
    for _ in source:
        pass
    if digest.hexdigest() != piece.sha256 or number != piece.lines:
        raise InventoryError(f"{name} is damaged: it does not have the rows that were written")
