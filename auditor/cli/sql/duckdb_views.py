"""Write the views of a run for DuckDB. Each names its columns and their types: nothing is inferred from the lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from auditor.cli.sql.tables import PARTITIONS, TABLES, SqlTable
from auditor.runs.packed_lines import LONGEST_LINE

_FILE: Final = """\
-- The views of a run for DuckDB, with explicit types: an ACL that was not read stays apart from one without grants.
-- Written by `make docs` from the types of the lines. Set the run's folder, a directory or s3://; then .read this file.
-- A run that is not complete has files that do not count: `auditor sql` leaves them out, and this file does not.
SET VARIABLE run = '{run}';

{views}
"""


def view(table: SqlTable, source: str, bucket: str, run: str) -> str:
    """Return the statement that makes the table's view. source: a table function of its files. bucket, run: expressions
    of the columns that the lines lack.
    """
    columns = [f"  {quoted(name)}" for name in _names(table)]
    places = [f"  {value} AS {quoted(name)}" for name, value in zip(PARTITIONS, (bucket, run), strict=True)]
    every = ",\n".join([*columns, *places])
    return f"CREATE OR REPLACE VIEW {table.name} AS SELECT\n{every}\nFROM {source};\n"


def json_files(table: SqlTable, files: str, more: str = "") -> str:
    """Return the call that reads the files of a table. files: an expression. more: further arguments."""
    types = ",\n".join(f"    {quoted(column.name)}: {text(column.type.duckdb)}" for column in table.columns)
    form = f"format = 'newline_delimited', compression = 'gzip', maximum_object_size = {LONGEST_LINE}"
    return f"read_json({files}, {form}{more}, columns = {{\n{types}\n  }})"


def no_rows(table: SqlTable) -> str:
    """Return a subquery with the table's columns and no row, for a run without such files."""
    columns = ", ".join(f"NULL::{column.type.duckdb} AS {quoted(column.name)}" for column in table.columns)
    return f"(SELECT {columns} WHERE false)"


def list_of(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(text, texts))}]"


def text(value: str) -> str:
    """Return a text as a literal of SQL."""
    return f"'{value.replace(chr(39), chr(39) * 2)}'"


def quoted(name: str) -> str:
    return f'"{name}"'


def duckdb_file(run: str) -> str:
    """Return the file of the views, for the DuckDB of somebody else. run: the folder of the run.

    All views name all files of the run, and keep their own by the path: a pattern without any file would be an error,
    and a run may have no finding.
    """
    views = []
    for table in TABLES:
        files = json_files(table, "getvariable('run') || '/*/part-*.jsonl.gz'", ", filename = true")
        source = f"{files}\nWHERE contains(filename, '/{table.name}/part-')"
        bucket, run_id = (f"regexp_extract(filename, '/{name}=([^/]+)/', 1)" for name in PARTITIONS)
        views.append(f"-- {table.words}\n{view(table, source, bucket, run_id)}")
    return _FILE.format(run=run.replace("'", "''"), views="\n".join(views).rstrip())


def _names(table: SqlTable) -> list[str]:
    return [column.name for column in table.columns]
