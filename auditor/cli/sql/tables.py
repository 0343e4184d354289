"""The tables of a run for SQL: objects, findings and undecided, with the columns of their lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, get_type_hints

from auditor.cli.sql.types import TEXT, ColumnType, members_of, type_of
from auditor.model.run_lines import FindingLine, ObjectLine, UndecidedLine

PARTITIONS: Final = {"bucket": "the audited bucket", "run": "ID of the run"}
"""The columns that no line has: the path of its file names them."""

_FLAT_BEFORE: Final = {
    "version_id": ("prefix1",),
    "acl": ("acl_state", "public_grant"),
    "head": ("head_state",),
    "verdict": ("public",),
}
"""The flat members that stand before a field in an object's line."""

_OBJECT_WORDS: Final = {
    "key": "the key as S3 holds it",
    "prefix1": "the key up to its first slash, with the slash, or empty",
    "version_id": "null unless the run looked at versions",
    "etag": "without quotes",
    "size": "bytes",
    "last_modified": "ISO 8601 in UTC",
    "storage_class": "such as STANDARD",
    "owner": "canonical ID of the owner of the object, null if unknown",
    "acl_state": "read, unread or skipped: only with read does acl have grants",
    "public_grant": "the ACL has a grant to everyone or to any account, null if the ACL was not read",
    "acl": "owner and grants, or unread (action, code), or skipped (the reason)",
    "head_state": "read, partial, unread or skipped: with partial, a null in head may be a member that was not read",
    "head": "the members of HeadObject, or unread, or skipped: metadata is JSON",
    "outcome": "audited, vanished or undecided",
    "changed": "overwritten between listing and reading",
    "latest": "false for a version that is not the current one of its key",
    "public": "anyone or any account can reach it, null if that is unknown, or vanished",
    "verdict": "exposed, unknown, shared, masked, dormant or private, null if vanished",
    "audience": "each audience that gets in, such as anyone",
    "reasons": "the facts that decided",
    "rules": "IDs of the rules that found something",
    "hashed": "a digest is known, null without a ledger",
    "since": "start of the first run of the unbroken row in which it was at least this open",
    "exception": "ID of the exception that covers the verdict",
    "read_at": "when acl or head was read and by which earlier source, null if all was read along with the listing",
    "dormant": "grants that are stored and hidden today, and at, the time of the S3 Inventory that shows them",
}
_FINDING_WORDS: Final = {
    "fingerprint": "the same from run to run",
    "rule": "ID of the rule",
    "severity": "critical, high, medium, low or info",
    "key": "null for a finding on the bucket itself",
    "version_id": "null unless the run looked at versions",
    "grantee": "of the grant, null for a finding without a grant",
    "permission": "of the grant",
    "message": "the finding in words",
    "verdict": "of the object, null for the bucket",
    "since": "start of the first run of the unbroken row that has the finding",
    "exception": "ID of the exception that covers the finding",
}
_UNDECIDED_WORDS: Final = {
    "key": "the key as S3 holds it",
    "version_id": "null unless the run looked at versions",
    "unread": "the facts that could not be read: action and code of each",
    "rules": "IDs of the rules that lacked a fact",
}


@dataclass(frozen=True, slots=True)
class SqlColumn:
    """One column. words: its meaning, a phrase without quotes."""

    name: str
    type: ColumnType
    words: str


@dataclass(frozen=True, slots=True)
class SqlTable:
    """One table: the lines of one kind of parts. columns: those that the lines have, in the order of their members."""

    name: str
    words: str
    columns: tuple[SqlColumn, ...]

    @property
    def all_columns(self) -> tuple[SqlColumn, ...]:
        """The columns of the lines, and those of the path."""
        return (*self.columns, *(SqlColumn(name, TEXT, words) for name, words in PARTITIONS.items()))


def _types(line: Any) -> Iterator[tuple[str, ColumnType]]:
    for name, kind in members_of(line).items():
        if line is ObjectLine:
            for flat in _FLAT_BEFORE.get(name, ()):
                yield flat, type_of(get_type_hints(getattr(line, flat).fget)["return"])
        yield name, kind


def _table(name: str, words: str, line: Any, columns: Mapping[str, str]) -> SqlTable:
    return SqlTable(name, words, tuple(SqlColumn(found, kind, columns[found]) for found, kind in _types(line)))


TABLES: Final = (
    _table("objects", "a row for each listed object", ObjectLine, _OBJECT_WORDS),
    _table("findings", "a row for each finding of a rule", FindingLine, _FINDING_WORDS),
    _table("undecided", "a row for each object with a fact that could not be read", UndecidedLine, _UNDECIDED_WORDS),
)
