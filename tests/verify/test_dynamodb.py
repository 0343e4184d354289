"""Verifying against the other kind of ledger."""

from __future__ import annotations

from pathlib import Path

from auditor.ledger import open_ledger
from auditor.text import visible
from tests.ledger.conftest import new_table
from tests.support.fakes.ledger import versions_of
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.verification import Bench


async def test_keys_come_from_the_table_in_the_order_of_the_listing(
    stub: StubServer, tmp_path: Path, moto_url: str
) -> None:
    async with open_ledger(f"dynamodb:{await new_table(moto_url)}", endpoint_url=moto_url) as ledger:
        bench = Bench(stub, ledger, tmp_path / "out")
        names = ("percent", "emoji", "nfc", "nfd", "newline")
        items = {key: bench.put(key, key.encode()) for key in map(ODD_KEYS.__getitem__, names)}
        await bench.recorded(*items.values())
        items[ODD_KEYS["percent"]].body = b"999%"
        stub.world.buckets[BUCKET].objects.remove(ODD_KEYS["emoji"])
        found = await bench.verify()
        expected = dict.fromkeys(items, "=") | {ODD_KEYS["percent"]: "*", ODD_KEYS["emoji"]: "-"}
        assert found.lines == [f"{expected[key]} {visible(key)}" for key in sorted(expected, key=str.encode)]
        assert [event.what for event in await bench.noted(ODD_KEYS["percent"])] == ["mismatch"]
        (version,) = await versions_of(ledger, BUCKET, ODD_KEYS["nfc"])
        assert version.digests["sha256"].verified_at is not None
