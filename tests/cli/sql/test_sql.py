"""`auditor sql` over the run folder of a real audit: no answer calls an object clean that was not read."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb
import pytest

from auditor.cli.sql.session import ROWS
from tests.cli.conftest import Run
from tests.support.audit_runs import audit
from tests.support.odd_keys import ODD_KEYS
from tests.support.paths import ROOT
from tests.support.servers.clients import BUCKET, client
from tests.support.servers.fixtures import stub_of
from tests.support.servers.stub import StubServer
from tests.support.servers.world import World, canned

PAGE = re.findall(
    r"^```sql\n(.*?)^```", (ROOT / "docs" / "outputs.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
)
"""The queries that docs/outputs.md shows."""
TABLES = ("objects", "findings", "undecided")
NO_PUBLIC_GRANT = (
    *PAGE[:3],
    "SELECT key FROM objects WHERE acl_state = 'read' AND NOT coalesce(public_grant, false)",
    "SELECT key FROM objects WHERE acl_state = 'read' AND NOT EXISTS"
    " (SELECT 1 FROM (SELECT unnest(acl.grants) AS g) WHERE g.grantee LIKE '%/AllUsers')",
)
"""Queries for the objects without a public grant."""


@pytest.fixture
def run(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    private = tmp_path / "tmp"
    private.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(private))

    def call(*arguments: str) -> tuple[int, str, str]:
        answer = run(*arguments)
        assert list(private.iterdir()) == []  # of the copies nothing stays
        return answer

    return call


def audited(run: Run, stub: StubServer, *flags: str) -> str:
    arguments = ("s3://audited", "--format", "json", "--endpoint-url", stub.url, *flags)
    folder = json.loads(run("audit", *arguments)[1])["out"]
    stub.forget()
    return str(folder)


def rows(run: Run, folder: str, query: str) -> list[dict[str, Any]]:
    code, out, err = run("sql", folder, query, "--format", "jsonl")
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()]


def keys(run: Run, folder: str, query: str) -> set[str]:
    return {row["key"] for row in rows(run, folder, query)}


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with three pairs of objects, of which the ACL, or the HEAD, could not be read: first, between and last."""
    with stub_of(World()) as stub:
        stub.world.add(BUCKET)
        for key in ("b", "c/1", "d"):
            stub.put(BUCKET, key)
        stub.put(BUCKET, "open/1", grants=canned("public-read", "a0" * 32))
        for place in ("a", "c/2", "z"):
            stub.put(BUCKET, f"{place}/acl", deny={"acl"})
            stub.put(BUCKET, f"{place}/head", deny={"head"})
        return asyncio.run(audit(stub, tmp_path_factory.mktemp("runs"))).folder


@pytest.fixture
def folder(run: Run, whole_run: Path) -> str:
    """A copy of the run in this directory."""
    return str(shutil.copytree(whole_run, Path("auditor-runs", whole_run.parent.name, whole_run.name)))


def test_no_unread_object_is_among_those_without_a_public_grant(run: Run, folder: str) -> None:
    unread = keys(run, folder, "SELECT key FROM objects WHERE acl_state = 'unread'")
    assert len(unread) == 3
    for query in NO_PUBLIC_GRANT:
        found = keys(run, folder, query)
        assert {"b", "c/1", "d"} <= found, query
        assert not found & (unread | {"open/1"}), query


def test_the_queries_of_the_page(run: Run, folder: str) -> None:
    assert len(PAGE) == 8
    for query in PAGE:
        found = rows(run, folder, query)
        assert found or "json_contains" not in query, query
        for fact in ("acl", "head"):
            assert f"{fact}_state =" not in query or f"a/{fact}" not in {row["key"] for row in found}


def test_a_skipped_fact_is_no_fact(run: Run, stub: StubServer) -> None:
    stub.put("audited", "a")
    folder = audited(run, stub, "--only", "O02")
    (row,) = rows(run, folder, "SELECT head_state, head.skipped, head.etag, acl_state FROM objects")
    assert row == {
        "head_state": "skipped",
        "skipped": "no selected rule needs it",
        "etag": None,
        "acl_state": "read",
    }
    assert rows(run, folder, "SELECT key FROM objects WHERE head_state = 'read'") == []


def test_odd_keys_come_back_unchanged_and_are_printed_escaped(run: Run, stub: StubServer) -> None:
    for key in ODD_KEYS.values():
        stub.put("audited", key)
    folder = audited(run, stub)
    assert keys(run, folder, "SELECT key FROM objects") == set(ODD_KEYS.values())
    prefixes = rows(run, folder, "SELECT key, prefix1, key[:instr(key, '/')] AS wanted FROM objects")
    assert [row for row in prefixes if row["prefix1"] != row["wanted"]] == []
    _, table, _ = run("sql", folder, "SELECT key FROM objects")
    assert all(line.isprintable() for line in table.split("\n"))
    assert f"{len(ODD_KEYS)} rows" in table
    _, sheet, _ = run("sql", folder, "SELECT key, -1 AS number FROM objects", "--format", "csv")
    cells = list(csv.reader(sheet.splitlines()))
    assert cells[0] == ["key", "number"]
    assert len(cells) == len(ODD_KEYS) + 1
    assert {cell[1] for cell in cells[1:]} == {"-1"}
    assert [cell for cell, _ in cells if cell.startswith(("=", "+", "-", "@"))] == []
    assert stub.requests == []


def test_without_a_query_the_tables_are_listed(run: Run, folder: str) -> None:
    code, out, _ = run("sql", folder, "--format", "jsonl")
    listed = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    for table in TABLES:
        described = rows(run, folder, f"DESCRIBE {table}")
        wanted = [(row["column_name"], row["column_type"]) for row in described]
        assert [(row["column"], row["type"]) for row in listed if row["table"] == table] == wanted
    assert [row for row in listed if not row["meaning"]] == []


def test_a_query_that_is_refused(run: Run, folder: str) -> None:
    for query, words in (
        ("SELECT nothing FROM objects", 'Referenced column "nothing" not found'),
        ("SELEC", "syntax error"),
        ("", "these are 0"),
        ("SELECT 1; SELECT 2", "these are 2"),
        ("COPY (SELECT 1) TO 'x'", "a query is one SELECT, not COPY"),
        ("SELECT CAST(key AS INT) FROM objects", "Could not convert string"),
        ("SELECT * FROM read_text('/etc/hostname')", "disabled by configuration"),
    ):
        code, out, err = run("sql", folder, query, "-q")
        coverage, said = err.splitlines()
        assert (code, out, words in said, "bug" in err) == (2, "", True, False), query
        assert (
            ": listing complete: 10 objects listed = 4 audited + 0 vanished + 6 that could not be looked at" in coverage
        )


def test_an_incomplete_run(run: Run, folder: str) -> None:
    Path(folder, "summary.json").unlink()
    code, out, err = run("sql", folder, "SELECT count(*) AS n FROM objects")
    assert (code, out.splitlines()[-2].split()) == (0, ["│", "10", "│"])
    assert "is NOT COMPLETE: the answer is about the 10 objects listed so far, of which 6 could not be looked" in err


def test_a_run_that_is_not_as_it_was_written(run: Run, folder: str) -> None:
    part, other = (Path(folder, kind, "part-00000-00000.jsonl.gz") for kind in ("objects", "undecided"))
    seal = Path(folder, "seal.json")
    part.with_name("part-00000-00001.jsonl.gz").write_bytes(part.read_bytes())  # the seal does not name it
    assert rows(run, folder, "SELECT count(*) AS n FROM objects") == [{"n": 10}]
    for file, data, named in (
        (part, part.read_bytes()[:-5], "objects/part-"),
        (part, part.read_bytes().replace(b"\x1f", b"\x1e"), "objects/part-"),
        (other, None, "undecided/part-"),
        (seal, None, "seal.json is gone or damaged"),
    ):
        before = file.read_bytes()
        file.unlink() if data is None else file.write_bytes(data)
        code, out, err = run("sql", folder, "SELECT count(*) FROM objects")
        assert (code, out, named in err, "is gone" in err) == (1, "", True, True), err
        file.write_bytes(before)


def test_a_long_answer(run: Run, folder: str) -> None:
    query = (
        "SELECT range AS n, [range, NULL] AS list, 1.5 AS d, 'nan'::DOUBLE AS x, true AS t, NULL AS none,"
        f" TIMESTAMPTZ '2026-01-02 03:04:05Z' AS at FROM range({2 * ROWS})"
    )
    _, out, _ = run("sql", folder, query)
    assert f"{2 * ROWS} rows ({ROWS} shown)" in out.splitlines()[-1]
    assert len(out.splitlines()) < ROWS + 10
    found = rows(run, folder, query)
    assert len(found) == 2 * ROWS
    assert all(row.pop("at").startswith("2026-01-0") for row in found)
    assert found[-2] == {"n": 2 * ROWS - 2, "list": [2 * ROWS - 2, None], "d": 1.5, "x": "NaN", "t": True, "none": None}
    _, sheet, _ = run("sql", folder, query, "--format", "csv")
    assert sheet.splitlines()[1].startswith('0,"[0, NULL]",1.5,nan,true,,2026-01-0')


def test_nothing_of_the_bucket_reaches_the_terminal_or_a_spreadsheet(run: Run, folder: str) -> None:
    texts = "chr(27) || '[2J', '=1+1', chr(127), chr(155), chr(8238), chr(10) || '@x', [{'=a': chr(27) || '-1'}]"
    query = f'SELECT {texts}, 1 AS "=\x1b[1m" -- the last'
    for form in ("table", "jsonl"):
        code, out, err = run("sql", folder, query, "--format", form)
        assert (code, all(line.isprintable() for line in out.split("\n"))) == (0, True), err
    names, cells = csv.reader(run("sql", folder, query, "--format", "csv")[1].splitlines())
    assert all(cell.isprintable() and cell[0] not in "=+-@" for cell in (*names, *cells))
    assert cells[1] == "'=1+1"


def test_plain_duckdb_with_the_shipped_views_sees_the_same(run: Run, folder: str) -> None:
    statements = run("sql", folder, "--schema", "duckdb")[1]
    with duckdb.connect() as plain:
        plain.execute(statements)
        for table in TABLES:
            plain.execute(f"SELECT to_json(line) FROM {table} AS line")
            found = [json.loads(line) for (line,) in plain.fetchall()]
            assert found == rows(run, folder, f"SELECT * FROM {table}")
        assert plain.execute("SELECT count(*) FROM objects WHERE acl_state = 'unread'").fetchall() == [(3,)]


def test_a_run_in_a_bucket(run: Run, folder: str, moto_url: str) -> None:
    bucket = f"results-{uuid4().hex[:12]}"
    s3 = client("s3", moto_url)
    s3.create_bucket(Bucket=bucket)
    for path in Path("auditor-runs").rglob("*"):
        if path.is_file():
            s3.put_object(Bucket=bucket, Key=f"deep/{path.relative_to('auditor-runs')}", Body=path.read_bytes())
    s3.close()
    place = f"s3://{bucket}/deep/bucket=audited/{Path(folder).name}"
    query = ("SELECT key FROM objects WHERE NOT public_grant", "--format", "csv")
    code, out, _ = run("sql", place, *query, "--endpoint-url", moto_url)
    assert (code, out.split()) == (0, ["key", "a/head", "b", "c/1", "c/2/head", "d", "z/head"])
    _, statements, _ = run("sql", place, "--schema", "athena", "--endpoint-url", moto_url)
    assert f"'s3://{bucket}/deep/bucket=${{bucket}}/run=${{run}}/undecided/'" in statements


def test_a_signal_ends_a_long_query(folder: str, tmp_path: Path) -> None:
    endless = "SELECT count(*) FROM range(10000000) a, range(1000000) b WHERE a.range * b.range % 7 = 3"
    child = subprocess.Popen(
        [sys.executable, "-m", "auditor", "sql", folder, endless],
        env=os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path / "tmp")},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stderr is not None
        first = child.stderr.readline()
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate()
    assert "listing complete" in first
    assert (child.returncode, out) == (4, "")
    assert err.splitlines()[-1] == "auditor: the query was stopped before it had an answer"
    assert list((tmp_path / "tmp").iterdir()) == []


def test_statements_for_another_program_need_no_duckdb(run: Run, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    code, out, err = run("sql", folder, "SELECT 1", "-q")
    assert (code, out) == (2, "")
    assert err == "auditor: auditor sql needs the package duckdb: from the project's folder, pip install '.[sql]'\n"
    code, out, _ = run("sql", folder, "--schema", "duckdb")
    assert (code, f"SET VARIABLE run = '{Path(folder).resolve()}'" in out) == (0, True)
    assert run("sql", folder, "--schema", "athena")[0] == 2
    assert run("sql", folder, "SELECT 1", "--schema", "duckdb")[0] == 2
