"""A Parquet file gives the same cells whatever types its columns have, and wherever the machine is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import duckdb
import pytest

from auditor.audit.mixed.parquet_rows import parquet_rows
from auditor.errors import InventoryError

COLUMNS: Final = ("Key", "Size", "LastModifiedDate")
CELLS: Final = ("ключ\n", "7", "2026-01-02T03:04:05Z")
READ: Final = """
import pathlib, sys
from auditor.audit.mixed.parquet_rows import parquet_rows
print(ascii(list(parquet_rows(pathlib.Path(sys.argv[1]), sys.argv[2:], "a.parquet"))))
"""
"""A program that prints the rows of a file: the time zone of DuckDB is that of its process."""


def written(folder: Path, key: str = "k", modified: str = "m") -> Path:
    """Write a file with one row. key, modified: SQL of the cells, made of the text k and the timestamp m."""
    path = folder / "a.parquet"
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        cells = f"{key} AS key, 7::BIGINT AS size, {modified} AS last_modified_date"
        source = f"(SELECT '{CELLS[0]}' AS k, TIMESTAMP '2026-01-02 03:04:05.678' AS m)"
        connection.execute(f"COPY (SELECT {cells} FROM {source}) TO '{path}' (FORMAT parquet)")
    return path


@pytest.mark.parametrize("key", ["k", "encode(k)"])
@pytest.mark.parametrize("modified", ["m", "m::TIMESTAMPTZ", "epoch_ms(m)", "strftime(m, '%Y-%m-%dT%H:%M:%S.%gZ')"])
def test_types_of_columns_do_not_matter(tmp_path: Path, key: str, modified: str) -> None:
    assert list(parquet_rows(written(tmp_path, key, modified), COLUMNS, "a.parquet")) == [CELLS]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_zone_of_the_machine_does_not_matter(tmp_path: Path, zone: str) -> None:
    path = written(tmp_path, modified="m::TIMESTAMPTZ")
    program = [sys.executable, "-c", READ, str(path), *COLUMNS]
    printed = subprocess.run(program, env={"TZ": zone}, capture_output=True, check=True, text=True).stdout
    assert printed == f"{[CELLS]!a}\n"


@pytest.mark.parametrize(("key", "modified"), [("'\\xFF'::BLOB", "m"), ("k", "'tonight'"), ("k", str(2**63 - 1))])
def test_cell_that_is_none_condemns_the_report(tmp_path: Path, key: str, modified: str) -> None:
    with pytest.raises(InventoryError, match=r"^a.parquet is no Parquet .*, so the report is damaged$"):
        list(parquet_rows(written(tmp_path, key, modified), COLUMNS, "a.parquet"))
