"""Open the rows of an S3 Inventory report that were spread to one range of a run."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import logging
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager

from auditor.aio.stop import Stop
from auditor.audit.mixed.sorted_rows import SortedRows
from auditor.audit.mixed.source import MixedFacts, PageFacts, ReportLimits
from auditor.audit.mixed.spread_file import NAME, SpreadFolder, SpreadPiece
from auditor.errors import InventoryError
from auditor.model.bucket import BucketFacts
from auditor.model.target import Target
from auditor.runs.packed_lines import packed_lines
from auditor.runs.paths import run_path
from auditor.runs.stores.base import Store
from auditor.s3.inventory.csv_rows import PieceReader
from auditor.s3.inventory.rows import encode_key
from auditor.s3.inventory.sorting import SortedLines
from auditor.text import visible

log = logging.getLogger(__name__)


@asynccontextmanager
async def open_range(
    store: Store,
    run_id: str,
    range_id: str,
    target: Target,
    facts: BucketFacts,
    limits: ReportLimits,
    stop: Stop,
    clock: Callable[[], float],
) -> AsyncIterator[PageFacts]:
    """Load the rows of a range, and yield the source of their facts. If a row is lost, each object is read by calls.

    store: has the run folder. target: with the keys of the range that are still to be audited. facts: those of the
    bucket. stop: ends the loading. clock: returns the present time, in seconds since 1970. Raises OutputError if the
    store cannot be read.
    """
    try:
        rows = await asyncio.to_thread(load_range, store, run_id, range_id, target, lambda: bool(stop))
    except InventoryError as error:
        log.warning("range %s: each object is read with calls, because %s", range_id, visible(str(error)))
        rows = None
    if rows is None:
        yield PageFacts()
        return
    try:
        yield MixedFacts(rows, facts, limits, clock)
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
