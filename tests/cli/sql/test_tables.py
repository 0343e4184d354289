"""The tables for Athena are those for DuckDB: the same columns, types and meanings."""

from __future__ import annotations

import re

from auditor.cli.sql.session import duckdb_views, statements

_TABLE = re.compile(r"CREATE EXTERNAL TABLE IF NOT EXISTS auditor\.(\w+) \(\n(.*?)\n\)\n", re.DOTALL)
_COLUMN = re.compile(r"  `(\w+)` (\S+) COMMENT '([^';]+)'")
_VIEW = re.compile(r"CREATE OR REPLACE VIEW (\w+) AS (.*?)\n\n", re.DOTALL)
_MEMBER = re.compile(r"    \"(\w+)\": '(.+)'")
_MEANING = re.compile(r"COMMENT ON COLUMN \w+\.\"(\w+)\" IS '([^';]+)';")
_NAMES = {"string": "VARCHAR", "bigint": "BIGINT", "boolean": "BOOLEAN"}
Columns = dict[str, tuple[str, str]]
"""The columns of a table in their order: name, type without quotes, meaning."""


def of_athena() -> dict[str, Columns]:
    tables = _TABLE.findall(statements("athena", "s3://REPORTS/audits", "s3://results"))
    columns = {table: _COLUMN.findall(body) for table, body in tables}
    return {table: {name: (_duckdb(kind), words) for name, kind, words in found} for table, found in columns.items()}


def _duckdb(kind: str) -> str:
    """Return Athena's type as DuckDB writes it."""
    while "<" in kind:
        kind = re.sub(r"array<([^<>]*)>", r"\1[]", re.sub(r"struct<([^<>]*)>", r"STRUCT(\1)", kind))
    for ours, theirs in _NAMES.items():
        kind = re.sub(rf"\b{ours}\b", theirs, kind)
    return kind


def of_duckdb() -> dict[str, Columns]:
    found = {}
    for table, body in _VIEW.findall(f"{duckdb_views('RUN')}\n"):
        meanings = dict(_MEANING.findall(body))
        found[table] = {name: (_plain(kind), meanings[name]) for name, kind in _MEMBER.findall(body)}
    return found


def _plain(kind: str) -> str:
    return kind.replace('"', "").replace(", ", ",").replace(" ", ":").replace("JSON", "VARCHAR")


def test_athena_has_the_columns_of_duckdb() -> None:
    found = of_athena()
    assert found == of_duckdb()
    assert [len(columns) for columns in found.values()] == [26, 11, 4]
    assert [list(columns) for columns in found.values()] == [list(columns) for columns in of_duckdb().values()]


def test_names_of_members_are_those_that_athena_keeps() -> None:
    """Athena's SerDe compares names in lower case."""
    members = " ".join(f"{name}:{kind}" for columns in of_athena().values() for name, (kind, _) in columns.items())
    assert [name for name in re.findall(r"(\w+):", members) if name != name.lower()] == []
