"""Ranges of any size are added up in little memory, and many processes write to one folder."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import auditor
from auditor.audit.divided.combine import combine
from auditor.config.resources import Resources
from auditor.runs.stores.local import LocalStore
from tests.audit.divided.test_combine import same
from tests.support.audit_runs import finish, start
from tests.support.divided_runs import Divided
from tests.support.servers.clients import BUCKET
from tests.support.servers.samples import sample_bucket
from tests.support.servers.stub import StubServer


class Read(LocalStore):
    """A store that knows which files were read. read: their paths."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.read: list[str] = []

    def get(self, path: str) -> bytes | None:
        self.read.append(path.partition("/run=")[2].partition("/")[2])
        return super().get(path)


def test_only_lines_of_ranges_without_a_seal_are_read_again(stub: StubServer, tmp_path: Path) -> None:
    stub.world.buckets[BUCKET] = sample_bucket(60)
    run = Divided(stub, tmp_path)
    begun = asyncio.run(run.begin(4))
    asyncio.run(run.ranges((one.id for one in begun.plan.ranges), part_lines=5))
    (seal,) = tmp_path.glob("bucket=*/run=*/parts-00002.json")
    seal.unlink()
    store = Read(tmp_path)
    assert run.run_id is not None
    done = combine(run.target, run.run_id, run.settings, Resources(store=store))
    assert done.summary.complete
    assert done.summary.findings["high"]
    assert done.summary.coverage.undecided
    read = {path for path in store.read if path.endswith(".gz")}
    assert {path.partition("/")[2][: len("part-00002")] for path in read} == {"part-00002"}
    assert auditor.check_run(done.summary.out).exit_code == 0


@pytest.mark.slow
def test_several_processes_in_one_run_lose_and_mix_nothing(stub: StubServer, tmp_path: Path) -> None:
    stub.world.buckets[BUCKET] = sample_bucket(160)
    _, (plain,), _ = finish(start(stub, tmp_path / "plain", small_parts=True), 120)
    flags = ("--jobs", "6", "--max-rate", "unlimited")
    code, (divided,), words = finish(start(stub, tmp_path / "divided", *flags, small_parts=True), 300)
    assert code == 4, words  # some samples are denied
    assert len(list(divided.folder.glob("state-*.json"))) > 6
    same(plain, divided)
    assert auditor.check_run(divided.folder).exit_code == 0
