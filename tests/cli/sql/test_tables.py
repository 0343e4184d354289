"""The tables for DuckDB and Athena have every member of every line, with types that keep an unread fact apart."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from typing import Any, Final

import pytest

from auditor.cli.sql.athena import PLACE, athena_file
from auditor.cli.sql.duckdb_views import duckdb_file
from auditor.cli.sql.tables import PARTITIONS, TABLES, SqlTable
from auditor.cli.sql.types import JSON, TEXT, ListType, StructType, type_of
from auditor.model.flat_members import NAMES
from auditor.model.json_text import plain
from auditor.model.object import Acl, DormantAcl, Head, ReadAt
from auditor.model.run_lines import FindingLine, ObjectLine, UndecidedLine
from auditor.reports.lines import finding_line, object_line, undecided_line
from tests.support.paths import ROOT
from tests.support.samples.reports import denied, finding, judged

JUDGED = judged("k")
DORMANT: Final = DormantAcl(Acl("owner", ()), "2026-01-02T03:04:05Z")
LATER: Final = replace(
    JUDGED, evidence=replace(JUDGED.evidence, read_at=ReadAt("2026-01-02T03:04:05Z"), dormant=DORMANT)
)
"""An object whose ACL a later run has read again, and that has hidden grants: its line has every member."""
LINES: Final[dict[str, Any]] = {"objects": ObjectLine, "findings": FindingLine, "undecided": UndecidedLine}
WRITTEN: Final[dict[str, dict[str, Any]]] = {
    "objects": object_line(LATER, None),
    "findings": plain(finding_line(finding("k"))),
    "undecided": plain(undecided_line(denied("k"))),
}
_DDL = re.compile(r"CREATE EXTERNAL TABLE IF NOT EXISTS auditor\.(\w+) \(\n(.*?)\n\)\n", re.DOTALL)
_COLUMN = re.compile(r"  `(\w+)` (\S+) COMMENT '([^';]+)',?")


def athena_columns() -> dict[str, dict[str, str]]:
    shipped = (ROOT / "docs" / "sql" / "athena.sql").read_text(encoding="utf-8")
    found = {}
    for name, body in _DDL.findall(shipped):
        rows = [_COLUMN.fullmatch(line) for line in body.splitlines()]
        assert all(rows), body
        found[name] = {row[1]: row[2] for row in rows if row}
    return found


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_each_member_of_a_line_is_a_column(table: SqlTable) -> None:
    names = {column.name for column in table.columns}
    assert names == set(WRITTEN[table.name])
    assert names == {field.name for field in fields(LINES[table.name])} | set(NAMES if table.name == "objects" else ())
    assert list(athena_columns()[table.name]) == [column.name for column in table.columns]


def test_the_shipped_files_are_those_of_the_code() -> None:
    for name, text in (("duckdb", duckdb_file("RUN")), ("athena", athena_file(PLACE))):
        assert (ROOT / "docs" / "sql" / f"{name}.sql").read_text(encoding="utf-8") == text, "run make docs"


@pytest.mark.parametrize("fact", ["acl", "head"])
def test_a_fact_that_was_not_read_has_members_of_its_own(fact: str) -> None:
    (column,) = [column for column in TABLES[0].columns if column.name == fact]
    assert isinstance(column.type, StructType)
    assert {"unread", "skipped"} <= column.type.members.keys()
    assert column.type.duckdb.endswith(', "unread" STRUCT("action" VARCHAR, "code" VARCHAR), "skipped" VARCHAR)')
    assert athena_columns()["objects"][fact].endswith(",unread:struct<action:string,code:string>,skipped:string>")


def test_head_has_every_member_with_its_type() -> None:
    (column,) = [column for column in TABLES[0].columns if column.name == "head"]
    assert isinstance(column.type, StructType)
    assert list(column.type.members)[:-2] == [field.name for field in fields(Head)]
    assert column.type.members["metadata"] == JSON
    assert column.type.members["content_length"].athena == "bigint"
    assert column.type.members["bucket_key_enabled"].duckdb == "BOOLEAN"


def test_lists_of_structs() -> None:
    assert athena_columns()["undecided"]["unread"] == "array<struct<action:string,code:string>>"
    assert type_of(tuple[str, ...]) == ListType(TEXT)


def test_athena_finds_the_files_by_bucket_and_run() -> None:
    statements = athena_file("s3://results/a'b/")
    for table in TABLES:
        template = "/".join(f"{name}=${{{name}}}" for name in PARTITIONS)
        assert f"'storage.location.template' = 's3://results/a\\'b/{template}/{table.name}/'" in statements
    assert statements.count("'injected'") == len(TABLES) * len(PARTITIONS)


def test_names_of_lines_are_those_that_athena_keeps() -> None:
    """Athena's SerDe compares names in lower case."""
    written = json.dumps(WRITTEN)
    assert [name for name in re.findall(r'"(\w+)":', written) if name != name.lower()] == []
