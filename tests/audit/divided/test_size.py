"""Ranges of any size are added up in little memory, and many processes write to one folder."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import auditor
from auditor.audit.divided.combine import combine
from auditor.config.resources import Resources
from auditor.runs.stores.local import LocalStore
from tests.audit.divided.test_combine import same
from tests.support.audit_runs import Result, finish, start
from tests.support.divided_folders import EXPOSED_EVERY, make
from tests.support.divided_runs import Divided
from tests.support.paths import ROOT
from tests.support.servers.clients import BUCKET
from tests.support.servers.samples import sample_bucket
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket

MIB = 1024 * 1024
COMBINE = """
import json, sys, time
from pathlib import Path
from auditor.audit.divided.combine import combine
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.model.target import Target
from auditor.runs.stores.local import LocalStore
bucket, run, out, url = sys.argv[1:]
settings = Settings(endpoint_url=url, out=out, max_rate=None, concurrency=16)
done = combine(Target(bucket), run, settings, Resources(store=LocalStore(Path(out))))
status = Path("/proc/self/status").read_text()  # getrusage() has the peak of the process before exec, too
peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
print(json.dumps({"complete": done.summary.complete, "listed": done.summary.coverage.listed, "peak": peak * 1024,
    "findings": sum(done.summary.findings.values()), "cpu": time.process_time()}))
"""


def combined(run_id: str, out: Path, url: str) -> dict[str, Any]:
    """Add a run up in a process of its own. Return its numbers, and the most memory that it had."""
    words = [sys.executable, "-c", COMBINE, BUCKET, run_id, str(out), url]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=3000)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


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
def test_memory_does_not_grow_with_the_lines(stub: StubServer, tmp_path: Path) -> None:
    # Without the seals of their parts, all lines are read: that takes the most memory.
    objects = int(os.environ.get("AUDITOR_LINES", "200000"))
    made = stub.world.buckets[BUCKET] = StubBucket(name=BUCKET)
    made.put("closed", b"x")
    made.put("open", b"x", acl="public-read")
    found = []
    for number in (objects // 10, objects):
        run = asyncio.run(make(stub, tmp_path / str(number), number, 20, sealed=False))
        assert run.run_id is not None
        found.append(combined(run.run_id, tmp_path / str(number), stub.url))
        assert found[-1]["complete"]
        assert found[-1]["listed"] == number
        assert found[-1]["findings"] == number // EXPOSED_EVERY
    print(found)
    assert found[1]["peak"] < 512 * MIB
    assert found[1]["peak"] < found[0]["peak"] + 16 * MIB


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


@pytest.mark.slow
def test_several_runs_into_one_place_lose_and_mix_nothing(stub: StubServer, tmp_path: Path) -> None:
    stub.world.buckets[BUCKET] = sample_bucket(40)
    plain = finish(start(stub, tmp_path / "plain", small_parts=True), 120)[1][0]
    began = [start(stub, tmp_path / "shared", small_parts=True) for _ in range(6)]
    results: list[Result] = []
    for child in began:
        code, found, words = finish(child, 300)
        assert code == 4, words
        results += found
    assert len({one.summary["run"] for one in results}) == 6
    for one in results:
        assert [line["key"] for line in one.objects] == [line["key"] for line in plain.objects]
        assert one.summary["verdicts"] == plain.summary["verdicts"]
        assert auditor.check_run(one.folder).faults == ()
    latest = json.loads((tmp_path / "shared" / f"bucket={BUCKET}" / "latest.json").read_text())
    assert latest["runs"]["current"][""] in {one.summary["run"] for one in results}
