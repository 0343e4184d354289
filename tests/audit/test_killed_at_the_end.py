"""A run that dies at any step of its end has not ended: it is never complete without its seal, nor called altered."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from auditor.aio.stop import Stop
from auditor.audit.audit_run import Audit
from auditor.audit.begin_run import Division
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.errors import OutputError, RunComplete
from auditor.ledger import open_ledger
from auditor.ledger.base import Ledger
from auditor.model.target import Target
from auditor.offline.check_run import RunChecker
from auditor.offline.library.runs import check_run
from auditor.runs.reading import RunReader, last_run
from auditor.runs.stores.base import Store
from auditor.runs.stores.local import LocalStore
from auditor.runs.stores.s3 import S3Store
from auditor.verify.run import Verification
from tests.support.audit_runs import audit
from tests.support.failing_stores import FullStore, MemoryObjects
from tests.support.paths import ROOT
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer

END: Final = ("00000.json", "rollups.json", "report.html", "seal.json", "summary.json", "latest.json")
"""The files of the end of a run, in the order in which they are written to a directory."""
OBJECTS: Final = 12


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    async with open_ledger(f"sqlite:{tmp_path}/ledger.db") as opened:
        yield opened


@pytest.fixture
def filled(stub: StubServer) -> StubServer:
    for number in range(OBJECTS):
        deny = {"acl"} if number == 5 else set()
        stub.put(BUCKET, f"k{number:03}", b"x", acl="public-read" if number % 4 == 0 else "private", deny=deny)
    return stub


def names(paths: list[str]) -> list[str]:
    return [path.rpartition("/")[2] for path in paths]


async def go(stub: StubServer, store: Store, run_id: str | None = None, ranges: int = 1) -> str:
    """Audit the stub's bucket into this store, or go on with a run, and return the run's ID."""
    settings = Settings(endpoint_url=stub.url, max_rate=None, concurrency=4)
    places = Resources(store=store)
    cut = Division(ranges, least=1)
    audit = Audit(Target(BUCKET), settings, places, Stop(), run_id=run_id, division=cut, part_lines=5)
    return (await audit.run()).run


def run_in(store: Store) -> RunReader:
    (run_id,) = {path.split("/")[1].removeprefix("run=") for path in store.list(f"bucket={BUCKET}/run=")}
    return RunReader(store, BUCKET, run_id)


def seal(store: Store) -> bytes | None:
    return store.get(f"{run_in(store).path}/seal.json")


async def ends(stub: StubServer, store: Store, *, seal_is_final: bool) -> None:
    """Assert that the run in the store has not ended, and that going on ends it, with the seal that it may have."""
    before, run = seal(store), run_in(store)
    found = RunChecker(run).run()
    if run.complete:
        assert (found.faults, found.exit_code) == ((), 0)
        with pytest.raises(RunComplete):
            await go(stub, store, run.run_id)
    else:
        assert (found.faults, found.exit_code) == ((), 4)
        assert "the run has not ended" in found.lacks[0]
        await go(stub, store, run.run_id)
    assert RunChecker(run_in(store)).run().exit_code == 0
    assert last_run(store, Target(BUCKET)).run_id == run.run_id  # type: ignore[union-attr]
    if seal_is_final:
        assert seal(store) == before
    assert run_in(store).summary.coverage.listed == OBJECTS  # type: ignore[union-attr]


@pytest.mark.parametrize("ranges", [1, 2])
async def test_a_disk_that_is_full_at_a_step_of_the_end(filled: StubServer, tmp_path: Path, ranges: int) -> None:
    """left: the number of the writes at the end for which there is no space."""
    whole = FullStore(tmp_path / "whole", 1000)
    await go(filled, whole, ranges=ranges)
    assert names(whole.written)[-len(END) :] == [f"{ranges - 1:05}.json", *END[1:]]
    for left in range(1, len(END) + 1):
        store = FullStore(tmp_path / f"{left}", len(whole.written) - left)
        with pytest.raises(OutputError, match="out of space"):
            await go(filled, store, ranges=ranges)
        store.room = 1000
        await ends(filled, store, seal_is_final=left <= END[::-1].index("seal.json"))


async def test_a_bucket_that_refuses_a_step_of_the_end(filled: StubServer) -> None:
    whole = MemoryObjects()
    await go(filled, S3Store(whole, "results"))
    for left in range(1, len(END) + 1):
        last = len(whole.written) - left
        objects = MemoryObjects(lambda number, key, last=last: number > last)  # type: ignore[misc]
        with pytest.raises(OutputError, match="QuotaExceeded"):
            await go(filled, S3Store(objects, "results"))
        objects.refuses = lambda number, key: False
        sealed = any(key.endswith("/seal.json") for key in objects.held)
        await ends(filled, S3Store(objects, "results"), seal_is_final=sealed)


@pytest.mark.parametrize("name", ["seal.json", "latest.json"])
async def test_a_process_that_is_killed_before_a_step_of_the_end(filled: StubServer, tmp_path: Path, name: str) -> None:
    whole = FullStore(tmp_path / "whole", 1000)
    await go(filled, whole)
    step = len(whole.written) - END[::-1].index(name)
    command = [sys.executable, "-m", "tests.support.killed_audit", str(tmp_path / "out"), filled.url, str(step)]
    done = await asyncio.to_thread(subprocess.run, command, cwd=ROOT, capture_output=True, timeout=120, check=False)
    assert done.returncode == -9, done.stderr
    store = LocalStore(tmp_path / "out")
    assert (seal(store) is not None) is (name in END[-2:])
    await ends(filled, store, seal_is_final=name in END[-2:])


async def test_the_next_run_of_a_target_that_lost_objects_counts_them_once(filled: StubServer, tmp_path: Path) -> None:
    """The page, the roll-ups and the seal of a run that goes on are those of the process that died."""
    first = await go(filled, LocalStore(tmp_path / "whole"))
    for number in (0, 8, 9, 10, 11):
        filled.world.buckets[BUCKET].objects.remove(f"k{number:03}")
    shutil.copytree(tmp_path / "whole", tmp_path / "cut")
    whole = FullStore(tmp_path / "whole", 1000)
    changes = RunReader(whole, BUCKET, await go(filled, whole)).summary.changes  # type: ignore[union-attr]
    assert changes.verdicts["exposed"]["gone"] == 2
    store = FullStore(tmp_path / "cut", len(whole.written) - END[::-1].index("summary.json") - 1)
    with pytest.raises(OutputError, match="out of space"):
        await go(filled, store)
    store.room = 1000
    (run,) = {path.parent for path in (tmp_path / "cut").glob("*/*/seal.json") if first not in str(path)}
    sealed = {name: (run / name).read_bytes() for name in ("seal.json", "report.html", "rollups.json", "run.json")}
    assert check_run(run).exit_code == 4
    second = await go(filled, store, run.name.removeprefix("run="))
    assert {name: (run / name).read_bytes() for name in sealed} == sealed
    assert RunReader(store, BUCKET, second).summary.changes == changes  # type: ignore[union-attr]
    assert check_run(run).exit_code == 0


async def test_a_run_that_another_file_names_and_that_has_no_summary_is_altered(
    filled: StubServer, tmp_path: Path
) -> None:
    first = await audit(filled, tmp_path)
    (first.folder / "summary.json").unlink()
    assert check_run(first.folder).faults == ("summary.json is gone: latest.json names the run as a complete one",)


async def test_a_summary_that_counts_otherwise_than_its_lines_is_altered(
    filled: StubServer, ledger: Ledger, tmp_path: Path
) -> None:
    result = await audit(filled, tmp_path, ledger=ledger, hash=True)
    assert check_run(result.folder).exit_code == 0
    file = result.folder / "summary.json"
    whole = file.read_text()
    for member, name, sentence in (
        ("verdicts", "exposed", "exposed objects, and the summary counts"),
        ("coverage", "undecided", "undecided objects, and the summary counts"),
        ("findings", "high", "high findings, and the summary counts"),
        ("hashing", "hashed_now", "hashed objects, and the summary counts"),
    ):
        value: Any = json.loads(whole)
        assert value[member][name]
        value[member][name] = 0
        file.write_text(json.dumps(value))
        found = check_run(result.folder)
        assert found.exit_code == 1
        assert any(sentence in fault for fault in found.faults), (member, found.faults)


async def test_a_verification_writes_its_summary_last(filled: StubServer, ledger: Ledger, tmp_path: Path) -> None:
    store = FullStore(tmp_path, 1000)
    settings = Settings(endpoint_url=filled.url, max_rate=None)
    places = Resources(store=store, ledger=ledger)
    await Verification(Target(BUCKET), settings, places, Stop()).run()
    assert names(store.written)[-2:] == ["report.html", "summary.json"]
