"""Damage to a ledger: it is found, it is named, and the history stands for a damaged row."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from msgspec.structs import replace

from auditor.errors import DigestConflict
from auditor.ledger import open_ledger
from auditor.ledger.base import Checked, Event, Ledger
from auditor.ledger.seals import row_seal
from tests.conformance.ledgers.base import ENTRY, KEY, MD5, ODD_KEYS, OTHER, REF, SHA, lines, subject
from tests.conformance.ledgers.seals import states
from tests.ledger.conftest import new_table

# The names of one field in both kinds of ledger, and a damaged value.
FIELDS = [
    ("digest", "sha256", OTHER),
    ("size", "size", 6),
    ("source", "sha256_source", "s3"),
    ("hashed_at", "sha256_at", "2036-01-02T03:04:05Z"),
    ("bytes_read", "sha256_bytes_read", 99),
]


DETAIL = {"algorithm": "sha256", "digest": SHA}
MATCH = Event(key=KEY, at="2026-05", what="verified", version_id="null", etag="etag", size=5, detail=DETAIL)


@dataclass(frozen=True, slots=True)
class Damager:
    """A ledger, and the ways to damage it behind its back. A line is the first one of its kind."""

    ledger: Ledger
    row: Callable[[str, str, Any], None]
    """Sets a field of the row of KEY: the column, the attribute, the value."""
    no_row: Callable[[], None]
    line: Callable[[str], None]
    """Changes the time of the line of this kind."""
    no_line: Callable[[str], None]
    unseal: Callable[[], None]
    """Takes the seals from all rows and lines."""


@pytest.fixture(params=["sqlite", "dynamodb"])
async def damager(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Damager]:
    if request.param == "sqlite":
        path = tmp_path / "ledger.db"
        async with open_ledger(f"sqlite:{path}") as ledger:
            yield of_sqlite(path, ledger)
        return
    url = request.getfixturevalue("moto_url")
    table = await new_table(url)
    async with open_ledger(f"dynamodb:{table}", endpoint_url=url) as ledger:
        yield of_dynamodb(boto3.resource("dynamodb", endpoint_url=url).Table(table), ledger)


def of_sqlite(path: Path, ledger: Ledger) -> Damager:
    def run(statement: str, *values: object) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            for name in ("history_is_never_changed", "history_is_never_deleted"):
                connection.execute(f"DROP TRIGGER IF EXISTS {name}")
            assert connection.execute(statement, values).rowcount > 0

    def unseal() -> None:
        run("UPDATE digests SET seal = ''")
        run("UPDATE history SET seal = ''")

    return Damager(
        ledger,
        row=lambda column, _, value: run(f"UPDATE digests SET {column} = ?", value),
        no_row=lambda: run("DELETE FROM digests"),
        line=lambda what: run("UPDATE history SET at = 'x' WHERE what = ?", what),
        no_line=lambda what: run("DELETE FROM history WHERE what = ?", what),
        unseal=unseal,
    )


def of_dynamodb(table: Any, ledger: Ledger) -> Damager:
    def items(wanted: str) -> list[Any]:
        found = [one for one in table.scan()["Items"] if one["pk"] != "-"]
        return [one for one in found if ("row" if "hashed_at" in one else one["what"]) == wanted]

    def put(item: Any, attribute: str, value: object) -> None:
        assert item[attribute] != value
        table.put_item(Item=item | {attribute: value})

    def delete(wanted: str) -> None:
        for one in items(wanted):
            table.delete_item(Key={"pk": one["pk"], "sk": one["sk"]})

    def unseal() -> None:
        for one in [*items("row"), *items("recorded")]:
            table.put_item(Item={name: value for name, value in one.items() if not name.endswith("seal")})

    return Damager(
        ledger,
        row=lambda _, attribute, value: put(items("row")[0], attribute, value),
        no_row=lambda: delete("row"),
        line=lambda what: put(items(what)[0], "at", "x"),
        no_line=delete,
        unseal=unseal,
    )


async def damaged(ledger: Ledger) -> list[Checked]:
    return [one async for part in ledger.checked() for one in part if one.state == "damaged"]


async def test_damaged_row_is_named_known_by_its_line_and_written_anew_once(damager: Damager) -> None:
    ledger = damager.ledger
    await ledger.record(replace(ENTRY, digests={"sha256": SHA, "md5": MD5}))
    await ledger.note("bucket", [MATCH])
    sound, told = await subject(ledger), await lines(ledger)
    for column, attribute, value in FIELDS:
        damager.row(column, attribute, value)
        found = await subject(ledger)
        assert "sha256 etag null" in found.damage, column
        assert [one.digests for one in found.versions] == [one.digests for one in sound.versions], column
        assert [one.damage async for one in ledger.subjects("bucket")] == [found.damage], column
        faults = [one for one in await damaged(ledger) if one.kind == "row"]
        assert {(fault.bucket, fault.key) for fault in faults} == {("bucket", KEY)}, column
        assert any("sha256 of version null, ETag etag: the seal is wrong" in fault.words for fault in faults), column
        assert await ledger.known("bucket", [REF], ["sha256", "md5"]) == [{"sha256": SHA, "md5": MD5}], column
        reader = ledger.in_order("bucket")
        assert await reader.known([REF], ["sha256"]) == [{"sha256": SHA}], column
        await reader.close()
        assert [await ledger.heal("bucket", [KEY, "another"]) for _ in range(2)] == [len(found.damage), 0], column
        assert await damaged(ledger) == [], column
        assert [one.digests for one in (await subject(ledger)).versions] == [one.digests for one in sound.versions]
        assert await lines(ledger) == told, column


def test_seal_of_a_row_is_that_of_its_fields_as_json() -> None:
    fields = ("etag", "null", 5, "sha256", SHA, "2026-01-02T03:04:05Z", "auditor", 0, None)
    for key in (*ODD_KEYS, "\ud800", '"\\\x7f\u2028'):
        text = json.dumps(("row", "bucket", key, *fields), separators=(",", ":"))
        assert row_seal("bucket", key, *fields) == hashlib.sha256(text.encode()).hexdigest()[:32], key


async def test_changed_and_missing_lines_and_rows_are_found(damager: Damager) -> None:
    ledger = damager.ledger
    await ledger.record(ENTRY)
    await ledger.note("bucket", [MATCH, Event(key=KEY, at="2026-05", what="missing", etag="etag")])
    damager.line("missing")
    assert [(one.what, one.seal) for one in await ledger.history("bucket", KEY)] == [
        ("recorded", "sound"),
        ("verified", "sound"),
        ("missing", "damaged"),
    ]
    (fault,) = await damaged(ledger)
    assert (fault.kind, fault.words.startswith("missing at x: the seal is wrong")) == ("line", True)
    assert await ledger.heal("bucket", [KEY]) == 0
    assert await ledger.known("bucket", [REF], ["sha256"]) == [{"sha256": SHA}]
    damager.no_line("verified")
    (fault,) = [one for one in await damaged(ledger) if one.kind == "row"]
    assert "the history has no verification at 2026-05" in fault.words
    damager.no_line("recorded")
    assert any("its line is missing from the history" in one.words for one in await damaged(ledger))


async def test_missing_row_is_found(damager: Damager) -> None:
    await damager.ledger.record(ENTRY)
    damager.no_row()
    (fault,) = await damaged(damager.ledger)
    assert (fault.kind, "the digest's row is missing" in fault.words) == ("line", True)


async def test_damaged_key_of_a_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    async with open_ledger(f"sqlite:{path}") as ledger:
        await ledger.record(ENTRY)
        for key in (b"\xff", 1.5, "text"):
            of_sqlite(path, ledger).row("key", "", key)
            words = {one.words.partition(": ")[2] for one in await damaged(ledger) if one.kind == "row"}
            assert words == {"the seal is wrong"}, key


async def test_row_and_line_without_a_seal_are_damaged(damager: Damager) -> None:
    await damager.ledger.record(ENTRY)
    damager.unseal()
    assert await states(damager.ledger) == {"row damaged": 1, "line damaged": 1}
    assert await damager.ledger.known("bucket", [REF], ["sha256"]) == [{}]
    await damager.ledger.note("bucket", [MATCH])
    assert (await states(damager.ledger))["row damaged"] == 1


async def test_row_is_not_written_anew_by_a_damaged_line(damager: Damager) -> None:
    await damager.ledger.record(ENTRY)
    damager.line("recorded")
    damager.row("digest", "sha256", OTHER)
    assert await damager.ledger.known("bucket", [REF], ["sha256"]) == [{}]
    (version,) = (await subject(damager.ledger)).versions
    assert version.digests["sha256"].damaged
    assert await damager.ledger.heal("bucket", [KEY]) == 0
    assert {one.kind for one in await damaged(damager.ledger)} == {"row", "line"}
    with pytest.raises(DigestConflict):
        await damager.ledger.record(ENTRY)


async def test_digest_that_the_line_has_is_no_conflict_with_a_damaged_row(damager: Damager) -> None:
    await damager.ledger.record(ENTRY)
    damager.row("digest", "sha256", OTHER)
    assert await damager.ledger.record(ENTRY) is False
    assert await damaged(damager.ledger) == []
    damager.row("digest", "sha256", OTHER)
    with pytest.raises(DigestConflict):
        await damager.ledger.record(replace(ENTRY, digests={"sha256": OTHER}))
