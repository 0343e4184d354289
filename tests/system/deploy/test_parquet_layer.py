"""The layer with DuckDB: its size beside the functions' package, equal in each build, and what is read by it."""

from __future__ import annotations

import os
import re
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from deploy import python
from deploy.budget import LAMBDA, Budget
from deploy.build import build
from deploy.install import locked
from deploy.options import PYTHON, ROOT, Options, read_options
from deploy.parquet import LIMITS, SELECTION, build_layer, main
from tests.support.inventory_reports import CURRENT, parquet_bytes, plain_rows
from tests.system.deploy.packages import Packages, names

READ = """
import pathlib, sys
from auditor.audit.sources.parquet_rows import parquet_rows
import duckdb
print(duckdb.__file__)
print([row[1] for row in parquet_rows(pathlib.Path("rows.parquet"), ("Bucket", "Key"), "rows.parquet")])
"""


def options_of(architecture: str | None, output: Path) -> Options:
    requirements = locked("parquet", SELECTION)
    return read_options(architecture, layer=False, output=output, requirements=requirements, environ={})


def test_the_layer_has_duckdb_alone_in_the_version_that_the_command_line_is_tested_with() -> None:
    assert LIMITS.unzipped + Budget().unzipped < LAMBDA
    pinned = re.findall(r"^([a-z].*)==([^ ]*)", (ROOT / locked("parquet", SELECTION)).read_text(), re.MULTILINE)
    assert pinned == [("duckdb", version("duckdb"))]


def test_everything_lies_where_lambda_puts_it_on_the_path(options: Options) -> None:
    (options.root / "requirements.txt").write_text("duckdb==2\n")
    packages = Packages(**{"duckdb/experimental/spark.py": b"", "adbc_driver_duckdb/__init__.py": b""})
    build_layer(options, installer=packages)
    found = names(options.output)
    assert "python/sdk/fast.so" in found
    assert all(name.startswith("python/") for name in found)
    assert not [name for name in found if "spark" in name or "adbc" in name]
    assert build_layer(options, installer=packages) == [f"{options.output}: unchanged"]
    (options.root / "requirements.txt").write_text("duckdb==3\n")
    build_layer(options, installer=packages)
    assert packages.calls == 2


def test_a_layer_that_cannot_be_made_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--architecture", "arm64", "--output", str(tmp_path / "layer.tar")]) == 1
    assert capsys.readouterr().err.startswith("no layer was made: ")


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["arm64", "x86_64"])
def test_it_is_built_for_each_architecture_and_equal_in_each_build(tmp_path: Path, architecture: str) -> None:
    """build_layer() raises BuildError for a library of another architecture, and for a layer over its limits."""
    first, second = (options_of(architecture, tmp_path / name) for name in ("one.zip", "two.zip"))
    for given in (first, second):
        build_layer(given, interpreter=python.find())
    assert first.output.read_bytes() == second.output.read_bytes()
    assert any(name.endswith("/licenses/LICENSE") for name in names(first.output))


@pytest.mark.slow
def test_beside_the_functions_code_it_reads_parquet(tmp_path: Path) -> None:
    interpreter = python.find()
    if interpreter is None:
        pytest.skip(f"python{PYTHON}, which the functions run on, is not on this machine's PATH")
    given = options_of(None, tmp_path / "layer.zip")
    build_layer(given, interpreter=interpreter)
    functions = read_options(None, layer=False, output=tmp_path / "function.zip", environ={})
    build(functions, interpreter=interpreter)
    layer, code, work = tmp_path / "opt", tmp_path / "task", tmp_path / "work"
    for output, folder in ((given.output, layer), (functions.output, code)):
        with zipfile.ZipFile(output) as archive:
            archive.extractall(folder)
    work.mkdir()
    (work / "rows.parquet").write_bytes(parquet_bytes(list(plain_rows("b", ["a b", "\u00e9\n"])), CURRENT))
    done = python.run(interpreter, os.pathsep.join([str(code), str(layer / "python")]), READ, work)
    assert done.returncode == 0, done.stderr
    where, rows = done.stdout.splitlines()
    assert where.startswith(str(layer))
    assert rows == "['a b', '\u00e9\\n']"
    assert [one.name for one in work.iterdir()] == ["rows.parquet"]
