"""A query sees one run: no other file, no network, no extension, no setting. And no line is misread, however late."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from auditor.cli.sql.session import MEMORY, SqlSession, lock, open_session
from auditor.errors import OutputError, UsageError
from auditor.model.finding import Judgement
from auditor.model.object import Unread
from tests.support.encoded_lines import encode_object
from tests.support.samples.reports import RUN, denied, judged

NONE: dict[str, list[Path]] = {"objects": [], "findings": [], "undecided": []}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "private"
    made.mkdir()
    return made


@pytest.fixture
def session(folder: Path) -> Iterator[SqlSession]:
    with open_session(folder, NONE, bucket="audited", run=RUN) as opened:
        yield opened


@pytest.fixture
def locked(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection as a session has it, for statements that a session refuses before DuckDB sees them."""
    with duckdb.connect() as connection:
        lock(connection, folder)
        yield connection


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('{outside}')",
        "SELECT * FROM read_blob('{private}/../outside')",
        "SELECT * FROM '{outside}'",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM sniff_csv('/etc/passwd')",
        "SELECT * FROM parquet_metadata('/etc/passwd')",
        "SELECT * FROM read_json('http://127.0.0.1:1/x')",
        "SELECT * FROM read_text('{private}-beside')",
        "SELECT getenv('HOME')",
        "SELECT * FROM query('COPY (SELECT 1) TO ''{private}/x''')",
        "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x",
    ],
)
def test_a_query_reads_no_other_file(session: SqlSession, folder: Path, query: str) -> None:
    for name in ("outside", "private-beside"):
        folder.with_name(name).write_text("secret\n1\n")
    with pytest.raises(UsageError, match="the query is refused, "):
        list(session.query(query.format(private=folder, outside=folder.with_name("outside"))).rows)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "statement",
    [
        "COPY (SELECT 1) TO '{outside}'",
        "COPY (SELECT 1) TO '{outside}.parquet'",
        "ATTACH '{outside}' AS other",
        "EXPORT DATABASE '{outside}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "LOAD '{outside}'",
        "CREATE SECRET (TYPE s3)",
        "SET enable_external_access = true",
        "RESET enable_external_access",
        "SET allowed_directories = ['/']",
        "SET lock_configuration = false",
        "SET temp_directory = '{outside}'",
        "SET memory_limit = '100GB'",
        "PRAGMA enable_profiling = 'json'",
        "SET profiling_output = '{outside}'",
        "SET log_query_path = '{outside}'",
    ],
)
def test_duckdb_itself_refuses_more_than_queries(
    session: SqlSession, locked: duckdb.DuckDBPyConnection, folder: Path, statement: str
) -> None:
    statement = statement.format(outside=folder.with_name("outside"))
    with pytest.raises(duckdb.Error):
        locked.execute(statement)
    with pytest.raises(UsageError):
        session.query(statement)
    assert [path.name for path in folder.parent.iterdir()] == ["private"]


@pytest.mark.parametrize(
    "statement",
    ["CREATE TABLE t (a INT)", "DROP VIEW objects", "EXPLAIN ANALYZE SELECT 1", "CALL pragma_version()", "CHECKPOINT"],
)
def test_only_a_select_is_a_query(session: SqlSession, statement: str) -> None:
    with pytest.raises(UsageError, match="a query is one SELECT, not "):
        session.query(statement)
    assert list(session.query("SELECT count(*) FROM objects").rows) == [(0,)]


def test_a_name_in_a_query_is_no_variable_of_python(session: SqlSession) -> None:
    settings = "current_setting('python_enable_replacements'), current_setting('python_scan_all_frames')"
    assert list(session.query(f"SELECT {settings}").rows) == [(False, False)]


def test_the_session_is_bounded(session: SqlSession, folder: Path) -> None:
    query = "SELECT current_setting('memory_limit'), current_setting('temp_directory')"
    assert list(session.query(query).rows) == [(MEMORY.replace("GiB", ".0 GiB"), f"{folder}/spilled")]
    with pytest.raises(OutputError, match="ask for less"):
        list(session.query("SELECT list(range) FROM range(1000000000)").rows)


def test_an_empty_run_has_all_columns_and_names_itself(session: SqlSession) -> None:
    answer = session.query("SELECT * FROM undecided")
    assert (answer.columns, list(answer.rows)) == (("key", "version_id", "unread", "rules", "bucket", "run"), [])


def write(folder: Path, judgements: list[tuple[Judgement, int]]) -> dict[str, list[Path]]:
    """Write a file of objects, each line so often."""
    part = folder / "objects.jsonl.gz"
    with gzip.open(part, "wb", compresslevel=1) as file:
        for judgement, times in judgements:
            file.write(encode_object(judgement, None) * times)
    return {**NONE, "objects": [part]}


CLEAN = "SELECT count(*) FROM objects WHERE NOT public_grant AND head_state = 'read'"


@pytest.mark.slow
def test_the_first_unread_line_comes_after_all_that_an_engine_would_sample(folder: Path) -> None:
    head = judged("head", head=Unread("HeadObject", "403"))
    files = write(folder, [(judged("k"), 200_001), (head, 1), (denied("acl"), 1), (judged("l"), 1)])
    with open_session(folder, files, bucket="audited", run=RUN) as session:
        assert list(session.query(CLEAN).rows) == [(200_002,)]
        rows = session.query("SELECT key, acl_state, head_state, public FROM objects WHERE key NOT IN ('k', 'l')").rows
        assert list(rows) == [("head", "read", "unread", False), ("acl", "unread", "skipped", None)]
    with duckdb.connect() as plain:  # an engine that infers the types loses `unread`, but not the flat members
        inferred = f"(SELECT * FROM read_json('{files['objects'][0]}'))"
        assert plain.execute(f"SELECT acl.grants, acl_state FROM {inferred} WHERE key = 'acl'").fetchall() == [
            (None, "unread")
        ]
        assert plain.execute(CLEAN.replace("objects", inferred)).fetchall() == [(200_002,)]


def test_a_run_of_unread_objects_alone(folder: Path) -> None:
    files = write(folder, [(denied("a"), 3)])
    with open_session(folder, files, bucket="audited", run=RUN) as session:
        assert list(session.query(CLEAN).rows) == [(0,)]
        assert list(session.query("SELECT acl.unread.code, acl.grants IS NULL FROM objects LIMIT 1").rows) == [
            ("AccessDenied", True)
        ]
