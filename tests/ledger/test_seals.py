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
from uuid import uuid4

import boto3
import pytest
from msgspec.structs import replace

from auditor.errors import DigestConflict
from auditor.ledger import open_ledger
from auditor.ledger.base import Checked, Event, Known, Ledger, Version
from auditor.ledger.dynamodb.ledger import create_table
from auditor.ledger.key_record import KeyRows
from auditor.ledger.leases import Lease, Work
from auditor.ledger.seals import mend, row_seal
from tests.conformance.ledgers.base import ENTRY, KEY, MD5, ODD_KEYS, OTHER, REF, SHA, lines, subject
from tests.conformance.ledgers.seals import states

# The names of one field in both kinds of ledger, and a damaged value.
FIELDS = [
    ("digest", "sha256", OTHER),
    ("size", "size", 6),
    ("source", "sha256_source", "s3"),
    ("hashed_at", "sha256_at", "2036-01-02T03:04:05Z"),
    ("bytes_read", "sha256_bytes_read", 99),
]


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
    url, table = request.getfixturevalue("moto_url"), f"ledger-{uuid4().hex}"
    await create_table(table, endpoint_url=url)
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


@pytest.mark.parametrize(("column", "attribute", "value"), FIELDS)
async def test_damaged_row_is_named_and_the_history_stands_for_it(
    damager: Damager, column: str, attribute: str, value: object
) -> None:
    await damager.ledger.record(ENTRY)
    sound = await subject(damager.ledger)
    damager.row(column, attribute, value)
    found = await subject(damager.ledger)
    assert found.damage == ("sha256 etag null",)
    assert found.versions == sound.versions
    assert [one.damage async for one in damager.ledger.subjects("bucket")] == [found.damage]
    (fault,) = [one for one in await damaged(damager.ledger) if one.kind == "row"]
    assert (fault.bucket, fault.key) == ("bucket", KEY)
    assert "sha256 of version null, ETag etag: the seal is wrong" in fault.words


@pytest.mark.parametrize("key", [*ODD_KEYS, "\ud800", '"\\\x7f\u2028'])
def test_seal_of_a_row_is_that_of_its_fields_as_json(key: str) -> None:
    fields = ("etag", "null", 5, "sha256", SHA, "2026-01-02T03:04:05Z", "auditor", 0, None)
    text = json.dumps(("row", "bucket", key, *fields), separators=(",", ":"))
    assert row_seal("bucket", key, *fields) == hashlib.sha256(text.encode()).hexdigest()[:32]


async def test_damaged_digest_is_not_known(damager: Damager) -> None:
    await damager.ledger.record(ENTRY)
    damager.line("recorded")
    damager.row("digest", "sha256", OTHER)
    assert await damager.ledger.known("bucket", [REF], ["sha256"]) == [{}]
    (version,) = (await subject(damager.ledger)).versions
    assert version.digests["sha256"].damaged


@pytest.mark.parametrize("what", ["recorded", "missing"])
async def test_changed_line_is_found(damager: Damager, what: str) -> None:
    await damager.ledger.record(ENTRY)
    await damager.ledger.note("bucket", [Event(key=KEY, at="2026-05", what="missing", etag="etag")])
    damager.line(what)
    found = await damaged(damager.ledger)
    assert any(one.kind == "line" and one.words.startswith(f"{what} at x: the seal is wrong") for one in found)


async def test_missing_line_of_the_last_verification_is_found_by_its_row(damager: Damager) -> None:
    await damager.ledger.record(ENTRY)
    match = Event(key=KEY, at="2026-05", what="verified", version_id="null", etag="etag", size=5)
    await damager.ledger.note("bucket", [replace(match, detail={"algorithm": "sha256", "digest": SHA})])
    damager.no_line("verified")
    (fault,) = await damaged(damager.ledger)
    assert (fault.kind, "the history has no verification at 2026-05" in fault.words) == ("row", True)


async def test_row_without_its_line_and_line_without_its_row_are_found(damager: Damager) -> None:
    await damager.ledger.record(ENTRY)
    damager.no_line("recorded")
    (fault,) = await damaged(damager.ledger)
    assert "its line is missing from the history" in fault.words


async def test_missing_row_is_found(damager: Damager) -> None:
    await damager.ledger.record(ENTRY)
    damager.no_row()
    (fault,) = await damaged(damager.ledger)
    assert (fault.kind, "the digest's row is missing" in fault.words) == ("line", True)


async def test_verification_does_not_seal_a_damaged_row(damager: Damager) -> None:
    await damager.ledger.record(ENTRY)
    damager.row("digest", "sha256", OTHER)
    match = Event(key=KEY, at="2026-05", what="verified", version_id="null", etag="etag", size=5)
    await damager.ledger.note("bucket", [replace(match, detail={"algorithm": "sha256", "digest": SHA})])
    assert [one.kind for one in await damaged(damager.ledger)] == ["row"]
    assert len(await lines(damager.ledger)) == 2


@pytest.mark.parametrize("key", [b"\xff", 1.5, "text"])
async def test_damaged_key_of_a_row_is_named(tmp_path: Path, key: object) -> None:
    path = tmp_path / "ledger.db"
    async with open_ledger(f"sqlite:{path}") as ledger:
        await ledger.record(ENTRY)
        of_sqlite(path, ledger).row("key", "", key)
        assert {one.words.partition(": ")[2] for one in await damaged(ledger) if one.kind == "row"} == {
            "the seal is wrong"
        }


async def test_damaged_lease_has_ended(tmp_path: Path) -> None:
    path, work = tmp_path / "ledger.db", Work(bucket="bucket", key=KEY, version_id=None, etag="e", algorithms=("md5",))
    async with open_ledger(f"sqlite:{path}") as ledger:
        await ledger.claim(work, "dead", 600.0)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE leases SET until = 'soon', fence = 'x', hops = x'ff'")
        lease = await ledger.claim(work, "other", 600.0)
        assert isinstance(lease, Lease)
        assert (lease.owner, lease.fence, lease.hops) == ("other", 1, 1)


async def test_row_and_line_without_a_seal_are_damaged(damager: Damager) -> None:
    await damager.ledger.record(ENTRY)
    damager.unseal()
    assert await states(damager.ledger) == {"row damaged": 1, "line damaged": 1}
    assert await damager.ledger.known("bucket", [REF], ["sha256"]) == [{}]
    match = Event(key=KEY, at="2026-05", what="verified", version_id="null", etag="etag", size=5)
    await damager.ledger.note("bucket", [replace(match, detail={"algorithm": "sha256", "digest": SHA})])
    assert (await states(damager.ledger))["row damaged"] == 1


GONE = "the row's name is damaged"


@pytest.mark.parametrize(
    ("name", "told", "mended"),
    [
        (("v1", "e", "sha256"), ["md5", "sha256"], SHA),
        (("v1", GONE, "sha256"), ["md5", "sha256"], SHA),
        (("v1", "e", GONE), ["sha256"], SHA),
        (("v1", GONE, "sha256"), [], OTHER),
        (("v1", GONE, "sha256"), ["of another form"], OTHER),
    ],
)
def test_line_that_fits_no_row_stands_for_a_row_whose_name_is_damaged(
    name: tuple[str, str, str], told: list[str], mended: str
) -> None:
    version_id, etag, algorithm = name
    known = Known(digest=OTHER, source="auditor", recorded_at="", verified_at=None, bytes_read=5, damaged=True)
    version = Version(version_id=version_id, etag=etag, size=5, digests={algorithm: known}, first_seen="")
    digests = {"sha256": {"digest": SHA}, "md5": {"digest": MD5}, "of another form": {}}
    line = Event(key=KEY, at="2026", what="recorded", version_id="v1", etag="e", size=5)
    rows = KeyRows(versions=[(version, 7)])
    mend(rows, [replace(line, detail={"algorithm": one, **digests[one]}) for one in told])
    ((found, place),) = rows.versions
    assert ([one.digest for one in found.digests.values()], place) == ([mended], 7)
    assert rows.damage == (f"{algorithm} {etag} {version_id}",)


@pytest.mark.parametrize(("column", "attribute", "value"), FIELDS)
async def test_damaged_row_is_known_by_its_line_and_written_anew_once(
    damager: Damager, column: str, attribute: str, value: object
) -> None:
    await damager.ledger.record(replace(ENTRY, digests={"sha256": SHA, "md5": MD5}))
    match = Event(key=KEY, at="2026-05", what="verified", version_id="null", etag="etag", size=5)
    await damager.ledger.note("bucket", [replace(match, detail={"algorithm": "sha256", "digest": SHA})])
    sound, told = await subject(damager.ledger), await lines(damager.ledger)
    damager.row(column, attribute, value)
    assert await damager.ledger.known("bucket", [REF], ["sha256", "md5"]) == [{"sha256": SHA, "md5": MD5}]
    reader = damager.ledger.in_order("bucket")
    assert await reader.known([REF], ["sha256"]) == [{"sha256": SHA}]
    await reader.close()
    damaged_rows = len((await subject(damager.ledger)).damage)
    assert [await damager.ledger.heal("bucket", [KEY, "another"]) for _ in range(2)] == [damaged_rows, 0]
    assert await damaged(damager.ledger) == []
    assert [one.digests for one in (await subject(damager.ledger)).versions] == [one.digests for one in sound.versions]
    assert await lines(damager.ledger) == told


async def test_row_is_not_written_anew_by_a_damaged_line(damager: Damager) -> None:
    await damager.ledger.record(ENTRY)
    damager.line("recorded")
    damager.row("digest", "sha256", OTHER)
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


async def test_damaged_line_is_marked_and_its_row_stays(damager: Damager) -> None:
    await damager.ledger.record(ENTRY)
    await damager.ledger.note("bucket", [Event(key=KEY, at="2026-05", what="missing", etag="etag")])
    damager.line("missing")
    assert [(one.what, one.seal) for one in await damager.ledger.history("bucket", KEY)] == [
        ("recorded", "sound"),
        ("missing", "damaged"),
    ]
    assert await damager.ledger.heal("bucket", [KEY]) == 0
    assert await damager.ledger.known("bucket", [REF], ["sha256"]) == [{"sha256": SHA}]
