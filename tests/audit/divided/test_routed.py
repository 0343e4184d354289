"""The batch manifests of a divided run are those of one process, also if they take several."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest

from auditor.audit.conclude_run import conclude_run
from auditor.errors import RunStopped
from auditor.ledger import open_ledger
from auditor.ledger.base import Ledger
from auditor.model.summary import Summary
from tests.support.audit_runs import audit
from tests.support.divided_runs import Divided
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket

ROUTES: Final[dict[str, Any]] = {"batch_over": 1, "only": ("K01",)}
ROWS: Final = 40
OBJECTS: Final = 150


async def ranged(stub: StubServer, out: Path, ledger: Ledger) -> Divided:
    """Begin a run of four ranges, and audit them."""
    made = stub.world.buckets[BUCKET] = StubBucket(name=BUCKET)
    for key in (*(f"{number:04}" for number in range(OBJECTS)), *ODD_KEYS.values()):
        made.put(key, b"xx")
    run = Divided(stub, out, ledger=ledger, **ROUTES)
    begun = await run.begin(4)
    await run.ranges((one.id for one in begun.ranges), part_lines=10)
    return run


async def added(run: Divided, seconds: float) -> Summary:
    assert run.run_id is not None
    done = await asyncio.to_thread(
        conclude_run, run.target, run.run_id, run.settings, run.places, time_left=lambda: seconds, batch_rows=ROWS
    )
    return done.summary


def written(folder: Path) -> dict[str, str]:
    return {one.name: one.read_text() for one in sorted((folder / "batch").iterdir())}


def manifest_rows(files: dict[str, str]) -> list[str]:
    """The rows of all manifests, in the order of the manifests' numbers."""
    names = sorted((name for name in files if name.startswith("manifest")), key=lambda name: (len(name), name))
    return [row for name in names for row in files[name].splitlines()]


async def test_several_processes_write_what_one_writes(stub: StubServer, tmp_path: Path) -> None:
    async with open_ledger(f"sqlite:{tmp_path / 'ledger.db'}") as ledger:
        run = await ranged(stub, tmp_path / "divided", ledger)
        folder = tmp_path / "divided" / f"bucket={BUCKET}" / f"run={run.run_id}"
        total = OBJECTS + len(ODD_KEYS)
        manifests = -(-total // ROWS)
        for number in range(1, manifests):
            with pytest.raises(RunStopped, match=rf"{number} of {manifests} batch manifests"):
                await added(run, 0.0)
            assert len([name for name in written(folder) if name.startswith("manifest")]) == number
            kept = written(folder)
        assert not (folder / "summary.json").exists()
        summary = await added(run, 0.0)
        assert summary.complete
        assert summary.hashing is not None
        assert summary.hashing.routed.objects == total
        plain = await audit(stub, tmp_path / "plain", ledger=ledger, **ROUTES)
    files = written(folder)
    assert {name: files[name] for name in kept if name != "progress.json"} == {
        name: text for name, text in kept.items() if name != "progress.json"
    }
    assert "progress.json" not in files
    assert manifest_rows(files) == manifest_rows(written(plain.folder))
    tokens = [json.loads(text)["ClientRequestToken"] for name, text in files.items() if name.startswith("job")]
    assert sorted(tokens) == sorted(f"{run.run_id}-{number}" for number in range(1, manifests + 1))
    seal = json.loads((folder / "seal.json").read_text())
    assert all(one["lines"] for one in seal["parts"]), "no process had to take a range from another"
