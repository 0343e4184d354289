"""Damaged rows of a ledger, by chance: each is told as damage, and the history stands for it, or it is left out.

No other exception than a LedgerError reaches the caller. tests/runs/test_damaged_files.py says how to try more of them.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, Final, cast

from msgspec.structs import replace

from auditor.aws.client import ThreadedClient
from auditor.errors import LedgerError
from auditor.ledger import open_ledger
from auditor.ledger.base import Event, Expectation, Ledger
from auditor.ledger.dynamodb.ledger import DynamoLedger
from auditor.ledger.leases import Held, Work
from tests.conformance.ledgers.base import ENTRY, KEY, MD5, NOTICE, ODD_KEYS, REF, SHA
from tests.ledger.conftest import dynamodb, new_table
from tests.support.damage import damaged_inputs

WORK: Final = Work(bucket="bucket", key=KEY, version_id=None, etag="etag", algorithms=("sha256",))
TEXTS: Final = (
    *(
        "",
        "x",
        "null",
        "[]",
        "{}",
        "NaN",
        "[NaN,1,[]]",
        "[Infinity,1,[]]",
        '[1,"x",[1]]',
        '[1,"x",["v","e",5,{"a":1}]]',
    ),
    *('[1,"x",[[],{},[],{"a":[]}]]', '[1,"x",["v","e","5",["ab"]]]', "[" * 100_000, "9" * 5000, "\u2028\U0001f512"),
    *("2026-13-45T99:99:99Z", "0001-01-01T00:00:00+14:00", "\x00", "x" * 70_000, '{"damaged":', "sha256", "etag#"),
)


async def filled(ledger: Ledger) -> None:
    """Write rows and lines of every kind into an empty ledger."""
    await ledger.record(ENTRY)
    await ledger.record(replace(ENTRY, version_id="v1", digests={"sha256": SHA, "md5": MD5}))
    await ledger.record_many([replace(ENTRY, key=key) for key in ODD_KEYS[:6]])
    match = Event(key=KEY, at="2026-05", what="verified", version_id="null", etag="etag", size=5)
    detail = {"algorithm": "sha256", "digest": SHA}
    others = [Event(key=KEY, at=f"2026-0{number}", what="missing", etag="etag") for number in (6, 7)]
    odd = replace(match, at="2026-08", detail={**detail, "origin": "other"})
    await ledger.note("bucket", [replace(match, detail=detail), odd, *others])
    await ledger.note("bucket", [Event(key=KEY, at="2026-09", what="retired", version_id="v1", etag="etag")])
    await ledger.arrived("bucket", NOTICE)
    await ledger.expect("bucket", [Expectation(key=KEY, algorithm="md5", digest=MD5, origin="m", imported_at="2026")])
    await ledger.claim(WORK, "owner", 60.0)


async def read(ledger: Ledger) -> None:
    """Read everything that a ledger has, through each of its doors, and check what no damage may change."""
    await _read(ledger.known("bucket", [REF, replace(REF, version_id="v1")], ["sha256", "md5"]))
    await _read(ledger.in_order("bucket").known([REF], ["sha256"]))
    await _read(ledger.history("bucket", KEY))
    await _read(ledger.subject("bucket", KEY))
    for every in (ledger.subjects("bucket"), ledger.histories("bucket"), ledger.checked()):
        try:
            async for part in every:
                assert part is not None
        except LedgerError:
            pass
    held = await _read(ledger.claim(WORK, "other", 60.0))
    assert held is None or isinstance(held, Held) or held.owner == "other"
    known = await _read(ledger.known("bucket", [REF], ["sha256"]))
    assert known in (None, [{}], [{"sha256": SHA}])


async def _read(asked: Any) -> Any:
    try:
        return await asked
    except LedgerError:
        return None


def damage_row(path: Path, chance: Random) -> str:
    """Give one field of one row of a SQLite ledger another value, and return words for it."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for name in ("history_is_never_changed", "history_is_never_deleted"):
            connection.execute(f"DROP TRIGGER IF EXISTS {name}")
        tables = ("digests", "versions", "history", "notices", "expectations", "leases")
        table = chance.choice([one for one in tables if connection.execute(f"SELECT 1 FROM {one}").fetchone()])
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] != "place"]
        column, key = chance.choice(columns), connection.execute(f"SELECT * FROM {table}").fetchall()
        row = chance.choice(key)
        names = [found[1] for found in connection.execute(f"PRAGMA table_info({table})")]
        where = " AND ".join(f"{name} IS ?" for name in names)
        value: Any = chance.choice((chance.choice(TEXTS), -1, 2**62, 1.5, 1e300, float("inf"), None, b"\xff\x00", b""))
        text = "CAST(x'ff80' AS TEXT)" if chance.random() < 0.1 else "?"
        values = (value, *row) if text == "?" else row
        try:
            connection.execute(f"UPDATE {table} SET {column} = {text} WHERE {where}", values)
        except sqlite3.IntegrityError:
            return "none"
    return f"{column} of {table} is {str(value)[:60]!r} by {text}"


def damage_bytes(path: Path, chance: Random) -> str:
    """Replace some bytes of a SQLite ledger, or cut it, and return words for it."""
    data, bad = path.read_bytes(), chance.randbytes(chance.choice((1, 4, 40)))
    at = chance.randrange(len(data))
    path.write_bytes(data[:at] + (bad + data[at + len(bad) :] if chance.random() < 0.9 else b""))
    return f"{len(bad)} bytes at {at}"


async def test_damaged_rows_and_bytes_of_sqlite(tmp_path: Path) -> None:
    whole, path, chance = tmp_path / "whole.db", tmp_path / "ledger.db", Random(1)
    async with open_ledger(f"sqlite:{whole}") as ledger:
        await filled(ledger)
        await read(ledger)
    shutil.copy(whole, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute("UPDATE digests SET digest = ?", ("0" * 64,)).rowcount
    async with open_ledger(f"sqlite:{path}") as ledger:
        await read(ledger)  # a digest as it should be, of other bytes
    for damage, usual in ((damage_row, 60), (damage_bytes, 40)):
        for number in range(damaged_inputs(usual)):
            shutil.copy(whole, path)
            told = damage(path, chance)
            try:
                async with open_ledger(f"sqlite:{path}") as ledger:
                    await read(ledger)
            except LedgerError:
                continue
            except Exception as error:
                error.add_note(f"input {number}: {told}")
                raise


class StoredItems:
    """A client of DynamoDB for a table with these items, in which nothing can be written."""

    region = "eu-north-1"

    def __init__(self, items: Sequence[dict[str, Any]]) -> None:
        self._items = sorted(items, key=lambda one: (one["pk"]["S"], one["sk"]["S"].encode(errors="surrogatepass")))

    async def call(self, operation: str, **asked: Any) -> dict[str, Any]:
        match operation:
            case "GetItem":
                found = self._named([asked["Key"]])
                return {"Item": found[0]} if found else {}
            case "BatchGetItem":
                ((table, wanted),) = asked["RequestItems"].items()
                return {"Responses": {table: self._named(wanted["Keys"])}}
            case "Scan":
                return {"Items": self._items if asked.get("Segment", 0) == 0 else []}
            case "Query":
                return {"Items": self._asked(asked)}
            case _:
                raise LedgerError("nothing can be written")

    def _named(self, names: Sequence[Any]) -> list[dict[str, Any]]:
        return [one for one in self._items if {"pk": one["pk"], "sk": one["sk"]} in names]

    def _asked(self, asked: Any) -> list[dict[str, Any]]:
        values = asked["ExpressionAttributeValues"]
        last = values.get(":last", {"S": "\U0010ffff"})["S"]
        mine = [one for one in self._items if one["pk"] == values[":pk"]]
        found = [one for one in mine if values[":first"]["S"] <= one["sk"]["S"] <= last]
        found = found if asked.get("ScanIndexForward", True) else found[::-1]
        return found[: asked.get("Limit")]


def damage_item(items: list[dict[str, Any]], chance: Random) -> str:
    """Give one attribute of one item another value, or take it away, and return words for it."""
    item = chance.choice(items)
    name = chance.choice([one for one in item if one not in ("pk", "sk")] or ["more"])
    text = chance.choice(TEXTS)
    values: list[dict[str, Any]] = [
        *({"S": text}, {"S": text}, *({"N": one} for one in ("1.5", "-1", "1E+2", "1E+125", "9" * 38))),
        *({"BOOL": True}, {"NULL": True}, {"L": []}, {"L": [{"S": text}]}, {"L": [{"N": "1"}]}, {"M": {}}),
        *({"M": {"a": {"N": "1"}}}, {"SS": ["a"]}, {"B": "AA=="}),
    ]
    if chance.random() < 0.15:
        item.pop(name, None)
        return f"no {name} of {item['sk']}"
    if name == "detail" and chance.random() < 0.5:
        item[name] = {"M": {"algorithm": chance.choice(values), "digest": chance.choice(values)}}
    else:
        item[name] = chance.choice(values)
    return f"{name} of {item['sk']} is {str(item[name])[:100]}"


async def test_damaged_item_of_dynamodb(moto_url: str) -> None:
    table, chance = await new_table(moto_url), Random(3)
    async with open_ledger(f"dynamodb:{table}", endpoint_url=moto_url) as ledger:
        await filled(ledger)
    whole = json.dumps(dynamodb(moto_url).scan(TableName=table)["Items"])
    for number in range(damaged_inputs(50)):
        items = json.loads(whole)
        told = damage_item(items, chance) if number else "none"
        try:
            await read(DynamoLedger(table, cast(ThreadedClient, StoredItems(items)), sleep=lambda _: asyncio.sleep(0)))
        except Exception as error:
            error.add_note(f"input {number}: {told}")
            raise
