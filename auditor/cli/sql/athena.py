"""Write the tables of all runs for Athena: external tables whose partitions are computed from the names in a query."""

from __future__ import annotations

from typing import Final

from auditor.cli.sql.tables import PARTITIONS, TABLES, SqlTable

PLACE: Final = "s3://REPORTS/audits"
"""The place of the runs in the shipped file, to be replaced."""

_HEAD: Final = """\
-- The tables of all runs below {place} for Athena: an ACL that was not read stays apart from one without grants.
-- Written by `make docs` from the types of the lines. Each query names a bucket and a run:
--   WHERE bucket = 'my-bucket' AND run = '20260102T030405Z-0a1b2c'
CREATE DATABASE IF NOT EXISTS auditor;
"""
_TABLE: Final = """
CREATE EXTERNAL TABLE IF NOT EXISTS auditor.{name} (
{columns}
)
COMMENT '{words}'
PARTITIONED BY ({partitions})
ROW FORMAT SERDE 'org.openx.data.jsonserde.JsonSerDe'
WITH SERDEPROPERTIES ('ignore.malformed.json' = 'false')
LOCATION '{place}/'
TBLPROPERTIES (
  'projection.enabled' = 'true',
{injected},
  'storage.location.template' = '{place}/{template}/{name}/'
);
"""


def athena_file(place: str) -> str:
    """Return the statements that make the database and its tables. place: of the runs, s3://BUCKET[/PREFIX]."""
    place = place.rstrip("/").replace("'", "\\'")
    return _HEAD.format(place=place) + "".join(_create(table, place) for table in TABLES)


def _create(table: SqlTable, place: str) -> str:
    return _TABLE.format(
        name=table.name,
        words=table.words,
        columns=",\n".join(
            f"  `{column.name}` {column.type.athena} COMMENT '{column.words}'" for column in table.columns
        ),
        partitions=", ".join(f"`{name}` string COMMENT '{words}'" for name, words in PARTITIONS.items()),
        injected=",\n".join(f"  'projection.{name}.type' = 'injected'" for name in PARTITIONS),
        template="/".join(f"{name}=${{{name}}}" for name in PARTITIONS),
        place=place,
    )
