"""A run continues with the settings it began with, or not at all: its counts never mix two audits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auditor.errors import OutputError, UsageError
from auditor.ledger import open_ledger
from auditor.runs.paths import run_path
from auditor.runs.stores.local import LocalStore
from tests.support.audit_runs import audit
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer


async def begun(stub: StubServer, out: Path, **settings: Any) -> str:
    """Start a run that --max-calls stops in the middle; its ID."""
    for number in range(20):
        stub.put(BUCKET, f"{number:02}", b"data")
    result = await audit(stub, out, max_calls=30, **settings)
    assert 0 < result.coverage["listed"] < 20
    run: str = result.summary["resume"]["run"]
    return run


async def test_other_rules_ledger_or_algorithms(stub: StubServer, tmp_path: Path) -> None:
    async with open_ledger("sqlite::memory:") as ledger:
        for number, (before, after, words) in enumerate(
            (
                ({"only": ("E01",)}, {}, "other rules"),
                ({}, {"ledger": ledger}, "without a ledger"),
                (
                    {"ledger": ledger},
                    {"ledger": ledger, "algorithms": ("md5",)},
                    r"began with other rules, .* or algor",
                ),
            )
        ):
            run = await begun(stub, tmp_path / str(number), **before)  # type: ignore[arg-type]
            with pytest.raises(UsageError, match=words):
                await audit(stub, tmp_path / str(number), resume=run, **after)  # type: ignore[arg-type]


async def test_tally_that_somebody_changed(stub: StubServer, tmp_path: Path) -> None:
    run = await begun(stub, tmp_path)
    store, path = LocalStore(tmp_path), f"{run_path(BUCKET, run)}/state.json"
    state = json.loads(store.get(path) or b"")
    state["tally"]["coverage"].update(listed=10**6)
    store.put(path, json.dumps(state).encode())
    with pytest.raises(OutputError, match=r"state\.json is damaged .*do not add up.*start a new run"):
        await audit(stub, tmp_path, resume=run)


async def test_same_again(stub: StubServer, tmp_path: Path) -> None:
    async with open_ledger("sqlite::memory:") as ledger:
        run = await begun(stub, tmp_path, ledger=ledger)
        result = await audit(stub, tmp_path, ledger=ledger, resume=run, engine="boto3", concurrency=1)
    assert result.summary["complete"]
    assert result.summary["hashing"]["pending"] == 20
