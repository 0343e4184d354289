"""A DuckDB in memory that sees copies of one run and no other file, no network, no extension and no setting."""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from auditor.errors import OutputError, RunStopped, UsageError
from auditor.offline.formats.csv import csv_row, neutral
from auditor.runs.paths import run_path
from auditor.runs.reading import RunReader, read_seal
from auditor.runs.run_files import SEAL, sha256_of
from auditor.runs.stores.local import output_errors
from auditor.text import harmless

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ROWS: Final = 1000
"""Largest number of rows of a table: DuckDB shows the first and the last ones of the first 10,000."""
MEMORY: Final = "1GiB"
"""Memory of a query. One that needs more writes to the private directory, or fails."""
STOPPED: Final = "the query was stopped before it had an answer"
_CONFIGURATION: Final = {
    "memory_limit": MEMORY,
    "python_enable_replacements": "false",  # a name in a query is never a variable of this program
    "python_scan_all_frames": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}
_AT_ONCE: Final = 1024
"""Number of rows that are fetched at once."""
_LONGEST: Final = 500
"""Largest number of characters of DuckDB's own words in an error."""
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-][0-9]+)?")
_ENDS: Final = "; \n"
_MISSING: Final = "auditor sql needs the package duckdb: from the project's folder, pip install '.[sql]'"


def statements(name: str, old: str, new: str) -> str:
    """Return the statements of the file NAME.sql beside this module with another place of the runs.

    old: the place in the file. new: the place for a text of SQL, its quotes escaped.
    """
    return (files("auditor.cli.sql") / f"{name}.sql").read_text(encoding="utf-8").replace(old, new)


def duckdb_views(run: str) -> str:
    """Return the statements that make the views of a run. run: path or URI of its folder."""
    return statements("duckdb", "'RUN'", _text(run))


def copy_parts(run: RunReader, folder: Path, stopped: Callable[[], bool]) -> None:
    """Copy the files that belong to the run below `folder`, with one of them in memory at a time.

    Raises OutputError for a file that is gone, and for one whose SHA-256 is not in the run's seal, though the seal
    names it or the run is complete. Raises RunStopped once `stopped` returns True.
    """
    seal = read_seal(run.store, run.path)
    sealed = {part.path: part.sha256 for part in seal.parts} if seal else {}
    for part in (part for _, parts in run.by_part() for part in parts.values()):
        if stopped():
            raise RunStopped(STOPPED)
        data, copy = run.store.get(f"{run.path}/{part.path}"), folder / part.path
        if data is None or ((run.complete or part.path in sealed) and sha256_of(data) != sealed.get(part.path)):
            raise OutputError(f"{run.uri}/{part.path} is gone, was added or was altered: its SHA-256 is not in {SEAL}")
        _write(copy, data)
    _write(folder / "none" / "part-.jsonl.gz", gzip.compress(b""))  # DuckDB refuses a pattern without any file


def _write(copy: Path, data: bytes) -> None:
    with output_errors(copy):
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(data)


@contextmanager
def open_session(folder: Path, bucket: str, run: str) -> Iterator[DuckDBPyConnection]:
    """Open a connection with the views of a run. folder: the private directory with the copies of the run, and room for
    files of DuckDB. Raises UsageError if DuckDB is not installed, and for its errors in the block; OutputError if room
    or memory is lacking; RunStopped after interrupt().
    """
    try:
        import duckdb  # dear, and not always installed
    except ImportError:
        raise UsageError(_MISSING) from None
    configuration: dict[str, Any] = {**_CONFIGURATION, "temp_directory": str(folder / "spilled")}
    try:
        with duckdb.connect(":memory:", config=configuration) as connection:
            connection.execute(duckdb_views(str(folder / run_path(bucket, run))))
            lock(connection, folder)
            yield connection
    except duckdb.InterruptException:
        raise RunStopped(STOPPED) from None
    except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
        raise OutputError(f"the query failed, {_words(error)}: ask for less, or make room for it") from error
    except duckdb.Error as error:
        raise UsageError(f"the query is refused, {_words(error)}") from error


def lock(connection: DuckDBPyConnection, folder: Path) -> None:
    """Let the connection read and write below `folder` alone, load no extension, and change no setting any more."""
    connection.execute(f"SET allowed_directories = [{_text(f'{folder}/')}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def answer(connection: DuckDBPyConnection, query: str, form: str, columns: int) -> Iterator[str]:
    """Yield the answer to one SELECT, safe to print. form: table, csv or jsonl. columns: width of a table. Raises
    UsageError for any other text.
    """
    found = connection.extract_statements(query)
    if len(found) != 1:
        raise UsageError(f"give one query: these are {len(found)}")
    if found[0].type.name != "SELECT":
        raise UsageError(f"a query is one SELECT, not {found[0].type.name}: a run is only ever read")
    if form == "table":
        shown = io.StringIO()
        with redirect_stdout(shown):
            connection.sql(query).show(max_rows=ROWS, max_width=columns)
        yield "\n".join(map(harmless, shown.getvalue().rstrip("\n").split("\n"))) + "\n"
        return
    rows = f"FROM (\n{query.rstrip(_ENDS)}\n) AS auditor_row"
    if form == "jsonl":
        for (line,) in _rows(connection, f"SELECT to_json(auditor_row) {rows}"):
            yield json.dumps(json.loads(line, parse_constant=str)) + "\n"
        return
    texts = _rows(connection, f"SELECT COLUMNS(*)::VARCHAR {rows}")
    yield csv_row([neutral(name) for name, *_ in connection.description or ()])
    for row in texts:
        yield csv_row([text if _NUMBER.fullmatch(text) else neutral(text) for text in (cell or "" for cell in row)])


def _rows(connection: DuckDBPyConnection, sql: str) -> Iterator[tuple[Any, ...]]:
    connection.execute(sql)
    return (row for rows in iter(lambda: connection.fetchmany(_AT_ONCE), []) for row in rows)


def _text(value: str) -> str:
    """Return a text as a literal of SQL."""
    return f"'{value.replace(chr(39), chr(39) * 2)}'"


def _words(error: Exception) -> str:
    """Return DuckDB's words on one line, shortened."""
    words = " ".join(str(error).split())
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"
