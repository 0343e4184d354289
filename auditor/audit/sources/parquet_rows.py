"""Read the rows of a Parquet file of an S3 Inventory report by DuckDB, an optional package."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from auditor.errors import InventoryError, UsageError
from auditor.s3.inventory.report import known_column

MEMORY: Final = "256MiB"
"""Memory of DuckDB for one file. A page of a column, up to all rows of a row group, is held whole: 600,000 rows in one
group take 190 MiB."""
LONGEST_ROW: Final = 256 * 1024
"""Bytes of all cells of a row. An ACL of 100 grants has some 30,000."""
_AT_ONCE: Final = 256
_MISSING: Final = (
    "a report in Parquet needs the package duckdb: in the project's folder, pip install '.[sql]'; in a"
    " deployment --param parquet=true; or set its format to CSV"
)
_CONFIGURATION: Final = {
    "threads": "1",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}
_MILLISECONDS: Final = frozenset({"BIGINT", "INTEGER"})
_NESTED: Final = ("MAP", "STRUCT", "UNION")
"""Types of values in values, beside lists. DuckDB reads lists in lists in a time that doubles with each level."""
_ZONED: Final = "TIMESTAMP WITH TIME ZONE"
_DATES: Final = frozenset({"LastModifiedDate", "ObjectLockRetainUntilDate"})


def check_parquet() -> None:
    """Raise UsageError if the package that reads Parquet is not installed."""
    _duckdb()


def parquet_rows(path: Path, columns: Sequence[str], name: str, *, memory: str = MEMORY) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a file, each with the cells that a CSV report has, but with the key as it is.

    columns: the names of the report's columns. name: the URI of the file. memory: of DuckDB. Raises InventoryError if
    the file is damaged, or takes more memory.
    """
    duckdb = _duckdb()
    try:
        with open_duckdb(duckdb, path, memory) as connection:
            source = f"read_parquet({_text(str(path))}, hive_partitioning = false)"
            described = connection.execute(f"DESCRIBE FROM {source}").fetchall()
            found = {known_column(row[0]): (row[0], row[1]) for row in described}
            if missing := [column for column in columns if column not in found]:
                raise InventoryError(f"{name} has no column {missing[0]}, so the report is damaged")
            if nested := [
                column for column in columns if found[column][1].startswith(_NESTED) or "[" in found[column][1]
            ]:
                raise InventoryError(f"{name} has lists in the column {nested[0]}, so the report is damaged")
            cells = ", ".join(f"{_cell(column, *found[column])} AS c{at}" for at, column in enumerate(columns))
            connection.execute(_within_limit(f"SELECT {cells} FROM {source}", len(columns)))  # noqa: S608 - quoted
            while rows := connection.fetchmany(_AT_ONCE):
                yield from rows
    except duckdb.OutOfMemoryException as error:
        raise InventoryError(
            f"{name} takes more than {memory} to read: set the format of the inventory to CSV"
        ) from error
    except duckdb.Error as error:
        words = " ".join(str(error).partition("\nLINE ")[0].replace(str(path), name).split())[:200]
        raise InventoryError(f"{name} is not Parquet ({words}), so the report is damaged") from error


@contextmanager
def open_duckdb(duckdb: Any, path: Path, memory: str) -> Iterator[Any]:
    """Open a DuckDB that may read this file alone. It writes nowhere but in the directory for temporary files: the
    working directory and the home of a function are not writable.
    """
    folder = tempfile.gettempdir()
    configuration = {
        **_CONFIGURATION,
        "memory_limit": memory,
        "temp_directory": f"{folder}/auditor-duckdb",
        "home_directory": folder,
    }
    with duckdb.connect(":memory:", config=configuration) as connection:
        connection.execute(f"SET allowed_paths = [{_text(str(path))}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection


def _cell(column: str, name: str, kind: str) -> str:
    """Return the SQL of a cell as text; "" for no value."""
    quoted = '"' + name.replace('"', '""') + '"'
    if column in _DATES:
        moment = f"CAST({quoted} AS TIMESTAMP)"
        if kind in _MILLISECONDS:
            moment = f"make_timestamp({quoted} * 1000)"
        elif kind == _ZONED:  # a cast would give the time of this machine's zone
            moment = f"make_timestamp(epoch_us({quoted}))"
        return f"coalesce(strftime({moment}, '%Y-%m-%dT%H:%M:%SZ'), '')"
    if kind == "BLOB":
        return f"coalesce(decode({quoted}), '')"
    return f"coalesce(CAST({quoted} AS VARCHAR), '')"


def _within_limit(query: str, columns: int) -> str:
    """Return a query whose rows are those of another one, and which fails at a row that is too long.

    A small file can name one long text in each of many rows. columns: the number of columns: c0, c1 and so on.
    """
    names = [f"c{at}" for at in range(columns)]
    size = " + ".join(f"strlen({name})" for name in names)
    first = f"CASE WHEN {size} > {LONGEST_ROW} THEN error('a row is too long') ELSE c0 END"
    return f"SELECT {', '.join([first, *names[1:]])} FROM ({query})"  # noqa: S608 - names are quoted


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _duckdb() -> Any:
    try:
        import duckdb  # dear, and not always installed
    except ImportError:
        raise UsageError(_MISSING) from None
    return duckdb
