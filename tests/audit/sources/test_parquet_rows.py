"""A Parquet file gives the same cells whatever types its columns have, and wherever the machine is."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import duckdb
import pytest

from auditor.audit.sources.parquet_rows import MEMORY, open_duckdb, parquet_rows
from auditor.errors import InventoryError

COLUMNS: Final = ("Key", "Size", "LastModifiedDate")
CELLS: Final = ("ключ\n", "7", "2026-01-02T03:04:05Z")
READ: Final = """
import pathlib, sys
from auditor.audit.sources.parquet_rows import parquet_rows
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


def test_types_of_columns_do_not_matter(tmp_path: Path) -> None:
    for key in ("k", "encode(k)"):
        for modified in ("m", "m::TIMESTAMPTZ", "epoch_ms(m)", "strftime(m, '%Y-%m-%dT%H:%M:%S.%gZ')"):
            path = written(tmp_path, key, modified)
            assert list(parquet_rows(path, COLUMNS, "a.parquet")) == [CELLS], (key, modified)


def test_file_that_takes_too_much_memory_is_not_called_damaged(tmp_path: Path) -> None:
    path = written(tmp_path, key="repeat(k, 2_000_000)")
    with pytest.raises(InventoryError, match=r"^a.parquet takes more than 8MiB to read: set the format .* to CSV$"):
        list(parquet_rows(path, COLUMNS, "a.parquet", memory="8MiB"))


def test_zone_and_folders_of_the_machine_do_not_matter(tmp_path: Path) -> None:
    """As in a function: no home, and a working directory that nobody may write to."""
    path, temporary, working = written(tmp_path, modified="m::TIMESTAMPTZ"), tmp_path / "tmp", tmp_path / "task"
    temporary.mkdir()
    working.mkdir(mode=0o500)
    program = [sys.executable, "-c", READ, str(path), *COLUMNS]
    environ = {"TMPDIR": str(temporary), "HOME": "/nonexistent", "TZ": "America/New_York"}
    done = subprocess.run(program, env=environ, cwd=working, capture_output=True, check=True, text=True)
    assert done.stdout == f"{[CELLS]!a}\n"
    assert list(working.iterdir()) == []


def test_the_file_alone_can_be_read_and_nothing_is_loaded(tmp_path: Path) -> None:
    path = written(tmp_path)
    other = path.rename(tmp_path / "other.parquet")
    path = written(tmp_path)
    with open_duckdb(duckdb, path, MEMORY) as connection:
        settings = dict(connection.execute("SELECT name, value FROM duckdb_settings()").fetchall())
        assert (settings["threads"], settings["memory_limit"]) == ("1", "256.0 MiB")
        assert settings["temp_directory"].startswith(tempfile.gettempdir())
        assert settings["home_directory"] == tempfile.gettempdir()
        for statement in (
            f"FROM read_parquet('{other}')",
            "FROM read_csv('/etc/hostname')",
            f"COPY (SELECT 1) TO '{tmp_path}/new.parquet'",
            "INSTALL httpfs",
            "LOAD httpfs",
            "SET threads = 2",
        ):
            with pytest.raises(duckdb.Error):
                connection.execute(statement)


def test_cell_that_is_none_condemns_the_report(tmp_path: Path) -> None:
    for key, modified in (("'\\xFF'::BLOB", "m"), ("k", "'tonight'"), ("k", str(2**63 - 1))):
        with pytest.raises(InventoryError, match=r"^a.parquet is not Parquet .*, so the report is damaged$"):
            list(parquet_rows(written(tmp_path, key, modified), COLUMNS, "a.parquet"))
    for value in ("[" * 100 + "1" + "]" * 100, "{'a': 1}", "MAP {'a': 1}"):
        with pytest.raises(InventoryError, match=r"^a.parquet has lists in the column Key, so the report is damaged$"):
            list(parquet_rows(written(tmp_path, key=value), COLUMNS, "a.parquet"))


DAMAGES: Final[dict[str, Callable[[bytes], bytes]]] = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "wrong magic": lambda data: data[:-4] + b"XXXX",
    "footer beyond the file": lambda data: data[:-8] + b"\xff\xff\xff\xffPAR1",
    "no footer": lambda data: data[:-8] + b"\0\0\0\0PAR1",
    "encrypted": lambda data: b"PARE" + data[4:-4] + b"PARE",
    "a page": lambda data: b"<html>" * 500,
}


def test_damaged_file_is_told_by_its_own_name_alone(tmp_path: Path) -> None:
    whole = written(tmp_path).read_bytes()
    for name, damage in DAMAGES.items():
        path = tmp_path / "a.parquet"
        path.write_bytes(damage(whole))
        with pytest.raises(InventoryError) as caught:
            list(parquet_rows(path, COLUMNS, "s3://reports/a.parquet"))
        said = str(caught.value)
        assert said.startswith("s3://reports/a.parquet is not Parquet ("), name
        assert said.endswith("), so the report is damaged"), name
        assert str(tmp_path) not in said, name
        assert "LINE" not in said, name
