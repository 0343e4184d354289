"""A mixed run over ranges of keys says what one process says: each range has its own rows of the report."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

import auditor
from auditor.aio.stop import Stop
from auditor.model.bucket import BUCKET_OWNER_ENFORCED
from tests.audit.divided.test_jobs import children, ended, run_id
from tests.audit.sources.test_inventory import BY_REPORT, MIXED, PLACE, assert_agree, report_of, same_findings
from tests.audit.sources.test_inventory import samples as samples
from tests.audit.sources.test_inventory import versions as versions
from tests.audit.test_run import every_version as every_version
from tests.audit.test_run_ends import wait_for
from tests.support.audit_runs import Line, Result, audit, check, finish, read_back, start, without
from tests.support.divided_runs import Divided
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import latency
from tests.support.servers.world import StubBucket

RANGES: Final = 5


def sources(lines: list[Line]) -> list[tuple[str, Any, Any]]:
    """By object: where its ACL and HEAD come from."""
    ages: list[Mapping[str, Any]] = [line.get("read_at") or {} for line in lines]
    return [(line["key"], age.get("acl_from"), age.get("head_from")) for line, age in zip(lines, ages, strict=True)]


def same(one: Result, divided: Result) -> None:
    """Assert that two runs say the same of each object, by as many calls, and leave out the same."""
    plain, ranged = (without(without(run.objects, "since"), "read_at") for run in (one, divided))
    for line, other in zip(plain, ranged, strict=True):
        assert line == other
    assert sources(one.objects) == sources(divided.objects)
    assert same_findings(one, divided)
    assert one.coverage == divided.coverage
    calls, others = one.summary["calls"], divided.summary["calls"]
    assert calls["head"] == others["head"]
    # An ACL is read again to prove that a HEAD was refused for a customer's key. HEADs at the same time share a proof.
    proofs = sum(line["head"].get("unread", {}).get("code") == "SSE-C" for line in one.objects)
    assert abs(calls["acl"] - others["acl"]) < max(proofs, 1)
    assert one.summary["not_looked_at"] == divided.summary["not_looked_at"]
    assert one.summary["kept"] == divided.summary["kept"]


def spread_files(run: Divided, out: Path) -> list[Path]:
    """The files of the spread rows in the run folder."""
    return sorted(path for path in out.glob(f"bucket=*/run={run.run_id}/inventory/*") if path.is_file())


async def test_current_objects_and_versions(
    stub: StubServer, samples: StubBucket, versions: StubBucket, tmp_path: Path
) -> None:
    for bucket, settings, form in (
        (samples, {}, "Parquet"),
        (samples, {"only": BY_REPORT}, "CSV"),
        (versions, {"versions": True}, "CSV"),
    ):
        stub.world.buckets[BUCKET] = bucket
        report_of(stub, bucket, form=form, files=3, versions=bucket is versions)
        out = tmp_path / str(settings)
        run = Divided(stub, out / "divided", **settings, **MIXED)
        divided = await run.whole(RANGES)
        same(await audit(stub, out / "one", **settings, **MIXED), divided)
        assert "inventory" in {source for _, source, _ in sources(divided.objects)}
        assert spread_files(run, out / "divided") == []


async def test_hidden_grants_and_objects_that_the_report_does_not_have(
    stub: StubServer, samples: StubBucket, tmp_path: Path
) -> None:
    samples.ownership = BUCKET_OWNER_ENFORCED
    report_of(stub, samples)
    for number in range(7):
        samples.put(f"plain/{number} is new", b"new")
    one = await audit(stub, tmp_path / "one", **MIXED)
    for ranges in (1, RANGES):
        same(one, await Divided(stub, tmp_path / f"{ranges}", **MIXED).whole(ranges))
    assert any("hidden grants of " in words for words in one.summary["not_looked_at"])
    assert one.summary["verdicts"]["dormant"] > 0


async def begun(stub: StubServer, out: Path, **settings: Any) -> tuple[Divided, list[str]]:
    """A mixed run that has begun, and the IDs of its ranges."""
    run = Divided(stub, out, **{"only": BY_REPORT, **MIXED, **settings})
    return run, [one.id for one in (await run.begin(RANGES)).ranges]


async def test_range_whose_rows_are_lost_reads_each_object_by_calls(
    stub: StubServer, samples: StubBucket, tmp_path: Path
) -> None:
    report_of(stub, samples)
    live = await audit(stub, tmp_path / "live", only=BY_REPORT)
    for lost in ("piece", "bytes", "file"):
        run, ids = await begun(stub, tmp_path / lost)
        pieces = [path for path in spread_files(run, tmp_path / lost) if path.name.startswith("00002")]
        if lost == "bytes":
            pieces[0].write_bytes(pieces[0].read_bytes()[:-1])
        else:
            (pieces[0] if lost == "piece" else pieces[0].parent / "spread.json").unlink()
        await run.ranges(ids)
        divided = check(read_back((await run.combine()).to_dict()))
        assert_agree(live.objects, divided.objects)
        assert same_findings(live, divided)
        taken = Counter(source for _, source, _ in sources(divided.objects))
        words = divided.summary["not_looked_at"]
        if lost == "file":
            assert taken["inventory"] == 0
            assert "what the S3 Inventory report of the run was: inventory/spread.json is gone" in words
        else:
            assert 0 < taken["inventory"] < len(live.objects)
            assert any(f"hidden grants of {taken[None]:,} objects whose ACL" in one for one in words)


async def test_range_that_was_stopped_goes_on_with_its_rows(
    stub: StubServer, samples: StubBucket, tmp_path: Path
) -> None:
    report_of(stub, samples)
    one = await audit(stub, tmp_path / "one", **MIXED)
    run, ids = await begun(stub, tmp_path / "divided", only=(), concurrency=1)
    stub.faults = [latency(0.05)]
    stop = Stop()
    asyncio.get_running_loop().call_later(0.4, stop.set, "the test stops it")
    assert await run.audit(ids[2], part_lines=3, stop=stop) is not None
    stub.faults = []
    assert not (await run.combine()).complete
    assert spread_files(run, tmp_path / "divided")  # a run that is not complete goes on with them
    assert auditor.check_run(run.folder).faults == ()
    await run.ranges(ids)
    divided = check(read_back((await run.combine()).to_dict()))
    assert_agree(one.objects, divided.objects)
    assert one.summary["not_looked_at"] == divided.summary["not_looked_at"]
    assert spread_files(run, tmp_path / "divided") == []


@pytest.mark.parametrize("flags", [(), pytest.param(("--versions",), marks=pytest.mark.slow)], ids=["current", "all"])
def test_two_processes_have_the_results_of_one(
    stub: StubServer, samples: StubBucket, versions: StubBucket, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    bucket = stub.world.buckets[BUCKET] = versions if flags else samples
    report_of(stub, bucket, form="Parquet" if flags else "CSV", versions=bool(flags), files=3)
    mixed = ("--source", "mixed", "--inventory", PLACE, *flags)
    one = asyncio.run(audit(stub, tmp_path / "1", versions=bool(flags), part_lines=20, **MIXED))
    _, (two,), _ = finish(start(stub, tmp_path / "2", *mixed, "--jobs", "2", small_parts=True), 120)
    assert two.summary["complete"]
    assert len(json.loads((two.folder / "run.json").read_text())["ranges"]) > 1
    same(one, two)


@pytest.mark.slow
def test_run_killed_at_any_moment_goes_on(stub: StubServer, samples: StubBucket, tmp_path: Path) -> None:
    """The process that begins the run, and those of its ranges, are killed by SIGKILL."""
    report_of(stub, samples, files=4)
    flags = ("--source", "mixed", "--inventory", PLACE, "--jobs", "2", "--max-rate", "unlimited")
    _, (one,), _ = finish(start(stub, tmp_path / "one", *flags[:4], small_parts=True), 120)
    stub.faults = [latency(0.03)]
    for number, calls in enumerate((4, 30, 37, 44, 60)):
        out = tmp_path / f"{number}"
        stub.forget()
        child = start(stub, out, *flags, "--concurrency", "4", small_parts=True)
        wait_for(lambda calls=calls: len(stub.calls) >= calls, child)  # type: ignore[misc]
        began = children(child.pid)
        os.kill(child.pid, signal.SIGKILL)
        child.communicate(timeout=30)
        assert ended(began)
        resumed = ("--resume", run_id(out)) if list(out.glob("bucket=*/run=*/run.json")) else ()
        code, (result,), words = finish(start(stub, out, *flags, *resumed, small_parts=True), 120)
        assert (code, result.summary["complete"]) == (4, True), words
        assert_agree(one.objects, result.objects)
        assert one.summary["not_looked_at"] == result.summary["not_looked_at"]
        assert list(out.glob("bucket=*/run=*/inventory/*")) == []
