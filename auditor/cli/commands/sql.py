"""The command `auditor sql`."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from auditor.cli import signals
from auditor.cli.options import settings_of
from auditor.cli.output import first_word, heard, remark, say
from auditor.cli.sql.athena import athena_file
from auditor.cli.sql.duckdb_views import duckdb_file
from auditor.cli.sql.printing import PRINTERS
from auditor.cli.sql.session import SqlSession, open_session
from auditor.cli.sql.spool import STOPPED, CopiedParts, copy_parts
from auditor.cli.sql.tables import TABLES
from auditor.errors import OutputError, RunStopped, UsageError
from auditor.reports.formats.base import coverage_sentence
from auditor.reports.summary import has_hole
from auditor.runs.folder_place import open_run
from auditor.runs.paths import run_path
from auditor.runs.reading import RunReader
from auditor.text import counted, shorten, visible

_TYPE: Final = 40
"""Largest width of a type in the table of the columns; the other formats have each whole."""
_COUNTS: Final = "SELECT (SELECT count(*) FROM objects), (SELECT count(*) FROM undecided)"
_AGAIN: Final = 0.2
"""Seconds between two interruptions of a query that has not ended: the first may come between two statements."""


def run(options: argparse.Namespace) -> int:
    """Answer the query, or list the tables, and return 0."""
    settings = settings_of(options)
    if options.schema is not None and options.query is not None:
        raise UsageError("--schema prints statements for another program: leave the query out")
    connection = {"endpoint_url": settings.endpoint_url, "profile": settings.profile, "region": settings.region}
    first_word(f"reading the run {visible(options.run_folder)}")
    with open_run(options.run_folder, **connection) as opened:
        sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]
        if options.schema is not None:
            sys.stdout.write(_schema(options.schema, opened))
        elif options.query is None:
            shown = partial(shorten, columns=_TYPE) if options.format == "table" else str
            rows = [
                (table.name, column.name, shown(column.type.duckdb), column.words)
                for table in TABLES
                for column in table.all_columns
            ]
            sys.stdout.writelines(PRINTERS[options.format](("table", "column", "type", "meaning"), rows))
        else:
            _Question(opened, options.query, options.format).ask()
        sys.stdout.flush()
    return 0


def _schema(name: str, opened: RunReader) -> str:
    if name == "duckdb":
        return duckdb_file(opened.uri)
    place = opened.uri.removesuffix(f"/{run_path(opened.bucket_name, opened.run_id)}")
    if not place.startswith("s3://"):
        raise UsageError("Athena reads runs in a bucket: give the s3:// URI of a run")
    return athena_file(place)


class _Question:
    """One query on a run, in a thread that a signal can interrupt."""

    def __init__(self, opened: RunReader, query: str, form: str) -> None:
        self._run = opened
        self._query = query
        self._form = form
        self._stopped = threading.Event()
        self._session: SqlSession | None = None

    def ask(self) -> None:
        """Answer the query on stdout. Raises RunStopped after Ctrl-C or SIGTERM."""
        with _terminable(), ThreadPoolExecutor(1) as pool:
            work = pool.submit(self._answer)
            try:
                work.result()
            except KeyboardInterrupt:
                self._interrupt(work)
                raise RunStopped(STOPPED) from None

    def _interrupt(self, work: Future[None]) -> None:
        signals.end_soon()
        self._stopped.set()
        while not work.done():
            if (session := self._session) is not None:
                session.interrupt()
            wait([work], _AGAIN)

    def _answer(self) -> None:
        with TemporaryDirectory(prefix="auditor-sql-") as place:
            folder = Path(place).resolve()
            copies = copy_parts(self._run, folder, self._stopped.is_set)
            heard()
            with open_session(folder, copies.files, bucket=self._run.bucket_name, run=self._run.run_id) as session:
                self._session = session
                self._tell_coverage(session, copies)
                answer = session.query(self._query)
                for piece in PRINTERS[self._form](answer.columns, answer.rows):
                    if self._stopped.is_set():
                        raise RunStopped(STOPPED)
                    sys.stdout.write(piece)

    def _tell_coverage(self, session: SqlSession, copies: CopiedParts) -> None:
        """Say on stderr how far the run looked: an answer about a part must not be taken for one about the whole."""
        summary = self._run.summary
        if copies.lines is None:
            ((listed, undecided),) = session.query(_COUNTS).rows
        else:
            listed, undecided = copies.lines["objects"], copies.lines["undecided"]
        if summary is None:
            so_far = counted(listed, "object")
            say(
                f"run {self._run.run_id} is NOT COMPLETE: the answer is about the {so_far} listed so far, of which "
                f"{undecided:,} could not be looked at"
            )
            return
        if (listed, undecided) != (summary.coverage.listed, summary.coverage.undecided) and summary.complete:
            raise OutputError(f"{self._run.uri} has lines other than its summary counts: `auditor check` says which")
        tell = say if has_hole(summary) else remark
        tell(f"run {self._run.run_id}: {coverage_sentence(summary)}")


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM interrupt the block as Ctrl-C does, so that the private directory is removed."""
    if threading.current_thread() is not threading.main_thread():  # no other thread may set handlers
        yield
        return
    before: Callable[..., object] | int | None = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
