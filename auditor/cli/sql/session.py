"""A DuckDB in memory that sees one run and nothing else: no other file, no network, no extension, no setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from auditor.cli.sql.duckdb_views import json_files, list_of, no_rows, text, view
from auditor.cli.sql.spool import STOPPED
from auditor.cli.sql.tables import TABLES
from auditor.errors import OutputError, RunStopped, UsageError
from auditor.text import visible

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Row = tuple[Any, ...]

MEMORY: Final = "1GiB"
"""Memory of a query. One that needs more writes to the private directory, or fails."""
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
_MISSING: Final = "auditor sql needs the package duckdb: from the project's folder, pip install '.[sql]'"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a query. rows: fetched as they are asked for, before the next query of the session."""

    columns: tuple[str, ...]
    rows: Iterator[Row]


class SqlSession:
    """The views of one run in a DuckDB. Made by open_session().

    interrupt() may be called from another thread at any time; the other methods block.
    """

    def __init__(self, duckdb: ModuleType, connection: DuckDBPyConnection) -> None:
        self._duckdb = duckdb
        self._connection = connection

    def interrupt(self) -> None:
        """End the query that runs now, if one does: it raises RunStopped."""
        with suppress(self._duckdb.ConnectionException):  # closed by now
            self._connection.interrupt()

    def query(self, sql: str) -> Answer:
        """Run one SELECT. Raises UsageError for any other text, here or when its rows are fetched."""
        with self._errors():
            statements = self._connection.extract_statements(sql)
            if len(statements) != 1:
                raise UsageError(f"give one query: these are {len(statements)}")
            if statements[0].type != self._duckdb.StatementType.SELECT:
                raise UsageError(f"a query is one SELECT, not {statements[0].type.name}: a run is only ever read")
            columns = self._connection.execute(statements[0]).description or []
            for name, kind, *_ in columns:
                if "WITH TIME ZONE" in str(kind):  # Python needs a further package for it
                    raise UsageError(f"column {visible(name)} is a time with a zone: cast it to TIMESTAMP or VARCHAR")
            return Answer(tuple(name for name, *_ in columns), self._rows())

    def _rows(self) -> Iterator[Row]:
        while True:
            with self._errors():
                rows = self._connection.fetchmany(_AT_ONCE)
            if not rows:
                return
            yield from rows

    @contextmanager
    def _errors(self) -> Iterator[None]:
        duckdb = self._duckdb
        try:
            yield
        except duckdb.InterruptException:
            raise RunStopped(STOPPED) from None
        except (duckdb.OutOfMemoryException, duckdb.IOException) as error:
            raise OutputError(f"the query failed, {_words(error)}: ask for less, or make room for it") from error
        except duckdb.Error as error:
            raise UsageError(f"the query is refused, {_words(error)}") from error


@contextmanager
def open_session(folder: Path, files: Mapping[str, Sequence[Path]], *, bucket: str, run: str) -> Iterator[SqlSession]:
    """Open a session on copies of a run's files. folder: the private directory that has the copies, and room for files
    of DuckDB. Raises UsageError if DuckDB is not installed.
    """
    try:
        import duckdb
    except ImportError:
        raise UsageError(_MISSING) from None
    configuration: dict[str, Any] = {**_CONFIGURATION, "temp_directory": str(folder / "spilled")}
    with duckdb.connect(":memory:", config=configuration) as connection:
        for table in TABLES:
            copies = list_of([str(file) for file in files[table.name]])
            source = json_files(table, copies) if files[table.name] else no_rows(table)
            connection.execute(view(table, source, text(bucket), text(run)))
        lock(connection, folder)
        yield SqlSession(duckdb, connection)


def lock(connection: DuckDBPyConnection, folder: Path) -> None:
    """Let the connection read and write below `folder` alone, load no extension, and change no setting any more."""
    connection.execute(f"SET allowed_directories = {list_of([f'{folder}/'])}")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _words(error: Exception) -> str:
    """Return DuckDB's words on one line, shortened."""
    words = " ".join(str(error).split())
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}…"
