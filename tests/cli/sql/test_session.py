"""A query sees one run: no other file, no network, no extension, no setting. And no line is misread, however late."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import duckdb
import pytest
from msgspec.structs import replace

from auditor.cli.sql.session import MEMORY, answer, lock, open_session
from auditor.errors import OutputError, UsageError
from auditor.model.finding import Judgement
from auditor.model.object import Acl, DormantAcl, FactOrigin, Grant, Head, ReadAt, Unread
from auditor.runs.paths import run_path
from tests.support.encoded_lines import encode_finding, encode_object, encode_undecided
from tests.support.samples.reports import RUN, denied, finding, judged


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The private directory of a session on a run without lines."""
    made = tmp_path / "private"
    write(made, "none", b"")
    return made


def write(folder: Path, kind: str, lines: bytes) -> Path:
    part = folder / run_path("audited", RUN) / kind / "part-00000-00000.jsonl.gz"
    part.parent.mkdir(parents=True)
    part.write_bytes(gzip.compress(lines, 1))
    return part


def rows(folder: Path, query: str) -> list[dict[str, Any]]:
    with open_session(folder, "audited", RUN) as connection:
        return [json.loads(line) for line in answer(connection, query, "jsonl", 100)]


@pytest.fixture
def session(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with open_session(folder, "audited", RUN) as connection:
        yield connection


@pytest.fixture
def locked(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection as a session has it, for statements that a session refuses before DuckDB sees them."""
    with duckdb.connect() as connection:
        lock(connection, folder)
        yield connection


def test_a_query_reads_no_other_file(folder: Path) -> None:
    for name in ("outside", "private-beside"):
        folder.with_name(name).write_text("secret\n1\n")
    for query in (
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
    ):
        with pytest.raises(UsageError, match="the query is refused, "):
            rows(folder, query.format(private=folder, outside=folder.with_name("outside")))
    assert [path.name for path in folder.iterdir()] == ["bucket=audited"]


def test_duckdb_itself_refuses_more_than_queries(
    locked: duckdb.DuckDBPyConnection, session: duckdb.DuckDBPyConnection, folder: Path
) -> None:
    for statement in (
        "COPY (SELECT 1) TO '{outside}'",
        "ATTACH '{outside}' AS other",
        "EXPORT DATABASE '{outside}'",
        "INSTALL httpfs",
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
    ):
        text = statement.format(outside=folder.with_name("outside"))
        with pytest.raises(duckdb.Error):
            locked.execute(text)
        with pytest.raises(UsageError):
            list(answer(session, text, "jsonl", 100))
    assert [path.name for path in folder.parent.iterdir()] == ["private"]
    for statement in ("CREATE TABLE t (a INT)", "DROP VIEW objects", "EXPLAIN ANALYZE SELECT 1", "CHECKPOINT"):
        with pytest.raises(UsageError, match="a query is one SELECT, not "):
            list(answer(session, statement, "jsonl", 100))
    assert rows(folder, "SELECT count(*) AS n FROM objects") == [{"n": 0}]


def test_the_session_is_bounded(folder: Path) -> None:
    query = "SELECT current_setting('memory_limit') AS memory, current_setting('temp_directory') AS place"
    assert rows(folder, query) == [{"memory": MEMORY.replace("GiB", ".0 GiB"), "place": f"{folder}/spilled"}]
    with pytest.raises(OutputError, match="ask for less"):
        rows(folder, "SELECT list(range) FROM range(1000000000)")


def test_a_long_answer_is_fetched_piece_by_piece(folder: Path) -> None:
    with open_session(folder, "audited", RUN) as connection:
        for form in ("csv", "jsonl"):
            lines = answer(connection, "SELECT range, repeat('x', 1000) FROM range(10000000000)", form, 100)
            assert len([next(lines) for _ in range(5000)]) == 5000


CLEAN = "SELECT count(*) AS n FROM objects WHERE NOT public_grant AND head_state = 'read'"


@pytest.mark.slow
def test_the_first_unread_line_comes_after_all_that_an_engine_would_sample(folder: Path) -> None:
    head = judged("head", head=Unread("HeadObject", "403"))
    one, *others = (encode_object(line, None) for line in (judged("k"), head, denied("acl"), judged("l")))
    part = write(folder, "objects", one * 30_001 + b"".join(others))
    assert rows(folder, CLEAN) == [{"n": 30_002}]
    found = rows(folder, "SELECT key, acl_state, head_state, public FROM objects WHERE key NOT IN ('k', 'l')")
    assert [tuple(row.values()) for row in found] == [
        ("head", "read", "unread", False),
        ("acl", "unread", "skipped", None),
    ]
    with duckdb.connect() as plain:  # an engine that infers the types loses `unread`, but not the flat members
        inferred = f"(SELECT * FROM read_json('{part}'))"
        assert plain.execute(f"SELECT acl.grants, acl_state FROM {inferred} WHERE key = 'acl'").fetchall() == [
            (None, "unread")
        ]
        assert plain.execute(CLEAN.replace("objects", inferred)).fetchall() == [(30_002,)]


def whole() -> Judgement:
    """An object whose line has every member: a later run has read its ACL again, and it has hidden grants."""
    samples: dict[Any, Any] = {str: "x", int: 7, bool: True}
    kinds = {name: next(iter(getattr(kind, "__args__", [kind]))) for name, kind in get_type_hints(Head).items()}
    members: dict[str, Any] = {name: samples.get(kind) for name, kind in kinds.items()}
    head = Head(**(members | {"metadata": {"team": "x"}}))
    found = judged("k", head=head)
    at = "2026-01-02T03:04:05Z"
    read_at = ReadAt(at, at, FactOrigin.INVENTORY, FactOrigin.RUN)
    dormant = DormantAcl(Acl("owner", (Grant("x", "READ"),)), at)
    return replace(found, evidence=replace(found.evidence, read_at=read_at, dormant=dormant))


def test_each_member_of_a_line_comes_back_with_its_value(folder: Path) -> None:
    """A member that the views lack, and a number that they take for a text, would differ."""
    written = {
        "objects": encode_object(whole(), None),
        "findings": encode_finding(finding("k")),
        "undecided": encode_undecided(denied("k")) or b"",
    }
    assert None not in json.loads(written["objects"])["head"].values()
    for kind, line in written.items():
        write(folder, kind, line)
        (row,) = rows(folder, f"SELECT * FROM {kind}")
        wanted = {**json.loads(line), "bucket": "audited", "run": RUN}
        for fact in ("acl", "head"):
            if kind == "objects":
                assert (row[fact].pop("unread"), row[fact].pop("skipped")) == (None, None)
        assert row == wanted
