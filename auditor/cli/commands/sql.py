"""The command `auditor sql`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from auditor.aio.stop import Stop
from auditor.cli import signals
from auditor.cli.command_frame import CommandFrame, command
from auditor.cli.flags import RESULTS, Flags
from auditor.cli.output import heard, remark, say
from auditor.cli.progress import columns
from auditor.cli.sql.session import STOPPED, answer, copy_parts, duckdb_views, open_session, statements
from auditor.errors import RunStopped, UsageError
from auditor.offline.formats.base import coverage_sentence
from auditor.reports.summary import has_hole
from auditor.runs.paths import run_path
from auditor.runs.reading import RunReader
from auditor.text import counted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TABLES: Final = (
    'SELECT table_name AS "table", column_name AS "column", data_type AS type, comment AS meaning'
    " FROM duckdb_columns() WHERE comment IS NOT NULL"
)
"""The query that stands for none: it lists the tables and their columns."""
_COUNTS: Final = "SELECT (SELECT count(*) FROM objects), (SELECT count(*) FROM undecided)"
_AGAIN: Final = 0.2
"""Seconds between two interruptions of a query that has not ended: the first may come between two statements."""


def declare_sql(flags: Flags) -> None:
    """Declare the flags of `auditor sql`.

    auditor sql s3://my-bucket 'FROM objects SELECT prefix1, count(*) WHERE public GROUP BY ALL'
    auditor sql s3://my-bucket 'FROM objects SELECT key WHERE public_grant = false' --format csv
    auditor sql s3://reports/bucket=b/run=20260101T000000Z-123456 --schema athena > tables.sql
    """
    flags.run_folder()
    flags.add("query QUERY", "one SELECT in DuckDB's SQL (without it: list the tables and columns)", nargs="?")
    words = "how the answer is printed: table has at most 1,000 rows, csv and jsonl have all rows"
    flags.form(("table", "csv", "jsonl"), words)
    schema = "print only the statements that let this program read such runs"
    flags.add("--schema", schema, RESULTS, choices=("athena", "duckdb"))
    flags.run_store()


@command()
def run_sql(frame: CommandFrame) -> int:
    """Answer the query, or list the tables, and return 0."""
    options = frame.options
    if options.schema is not None and options.query is not None:
        raise UsageError("--schema prints statements for another program: leave the query out")
    with frame.reading(options.run_folder) as opened:
        sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]
        if options.schema is not None:
            sys.stdout.write(_schema(options.schema, opened))
        else:
            query = _TABLES if options.query is None else options.query
            with TemporaryDirectory(prefix="auditor-sql-") as place:
                signals.run(_ask(opened, Path(place).resolve(), query, options.format))
        sys.stdout.flush()
    return 0


def _schema(name: str, opened: RunReader) -> str:
    if name == "duckdb":
        return duckdb_views(opened.uri)
    place = opened.uri.removesuffix(f"/{run_path(opened.bucket_name, opened.run_id)}")
    if not place.startswith("s3://"):
        raise UsageError("Athena reads runs in a bucket: give the s3:// URI of a run")
    return statements("athena", "s3://REPORTS/audits", place.replace("'", "\\'"))


async def _ask(opened: RunReader, folder: Path, query: str, form: str) -> None:
    """Print the answer to the query. folder: the private directory. Raises RunStopped after Ctrl-C or SIGTERM."""
    stop = signals.stop_on_signals()
    await asyncio.to_thread(copy_parts, opened, folder / run_path(opened.bucket_name, opened.run_id), stop.is_set)
    heard()
    with open_session(folder, opened.bucket_name, opened.run_id) as connection:
        work = asyncio.create_task(asyncio.to_thread(_print, opened, connection, query, form, stop))
        while not (await asyncio.wait([work], timeout=_AGAIN))[0]:
            if stop:
                connection.interrupt()
        work.result()


def _print(opened: RunReader, connection: DuckDBPyConnection, query: str, form: str, stop: Stop) -> None:
    _tell_coverage(opened, connection)
    for piece in answer(connection, query, form, columns()):
        if stop:
            raise RunStopped(STOPPED)
        sys.stdout.write(piece)


def _tell_coverage(opened: RunReader, connection: DuckDBPyConnection) -> None:
    """Say on stderr how far the run looked: an answer about a part must not be taken for one about the whole."""
    if (summary := opened.summary) is not None:
        tell = say if has_hole(summary) else remark
        tell(f"run {opened.run_id}: {coverage_sentence(summary)}")
        return
    ((listed, undecided),) = connection.execute(_COUNTS).fetchall()
    say(
        f"run {opened.run_id} is NOT COMPLETE: the answer is about the {counted(listed, 'object')} listed so far, of"
        f" which {undecided:,} could not be looked at"
    )
