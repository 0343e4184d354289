"""A run that is divided into ranges has the same results as one that is not, and says what it lacks."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest

import auditor
from auditor.errors import OutputError, RunChanged, RunComplete, RunDamaged, RunMissing, UsageError
from auditor.model.target import Target
from tests.audit.test_changes import night
from tests.support.audit_runs import Result, audit, read_back, without
from tests.support.divided_runs import Divided
from tests.support.servers.clients import BUCKET
from tests.support.servers.samples import sample_bucket
from tests.support.servers.stub import StubServer

OWN: Final = ("run", "out", "seconds", "calls", "sealed")
"""The members of a summary that differ between two runs of the same bucket."""


def same(one: Result, other: Result, *hidden: str) -> None:
    """Assert that two runs have the same lines and the same summary, but for the members that each run has its own."""
    names = [[(line["key"], line["version_id"]) for line in run.objects] for run in (one, other)]
    assert names[0] == names[1]
    different = [pair for pair in zip(one.undated, other.undated, strict=True) if pair[0] != pair[1]]
    assert different == []
    assert without(one.findings, "since") == without(other.findings, "since")
    assert one.undecided == other.undecided
    own = {*OWN, *hidden}
    left, right = ({name: value for name, value in run.summary.items() if name not in own} for run in (one, other))
    assert left == right


def groups(result: Result) -> dict[str, Any]:
    """The roll-ups of a run, without its ID and its time."""
    found = json.loads((result.folder / "rollups.json").read_text())
    for group in found["groups"]:
        times = [group.pop("since"), *(sample.pop("since") for sample in group["samples"])]
        assert len({time for time in times if time is not None}) <= 1
    return {name: found[name] for name in ("complete", "totals", "groups", "first", "not_predicted")}


@pytest.mark.parametrize(("ranges", "versions"), [(3, False), (7, True)])
async def test_divided_run_equals_an_undivided_one(
    stub: StubServer, tmp_path: Path, ranges: int, versions: bool
) -> None:
    made = stub.world.buckets[BUCKET] = sample_bucket(120)
    made.versioning = "Enabled"
    for number in range(100, 120):
        made.put(f"plain/{number:07d}.txt", b"newer")
        if number % 10 == 0:
            made.delete(f"plain/{number:07d}.txt")
    for key in ("odd/new\nline", "odd/%41", "odd//slash", "odd/ключ", "odd/\U0001f511", "../up", "/lead"):
        made.put(key, b"x", acl="public-read")
    plain = await audit(stub, tmp_path / "plain", versions=versions)
    divided = await Divided(stub, tmp_path / "divided", versions=versions).whole(ranges, part_lines=20)
    same(plain, divided)
    assert groups(plain) == groups(divided)
    assert auditor.check_run(divided.folder).exit_code == 0


async def test_second_night_compares_with_the_first_across_ranges(stub: StubServer, tmp_path: Path) -> None:
    stub.world.buckets[BUCKET] = night(0)
    await audit(stub, tmp_path / "plain")
    first = await Divided(stub, tmp_path / "divided").whole(3)
    await asyncio.sleep(1)  # runs that begin in one second are in no order
    stub.world.buckets[BUCKET] = night(1)
    plain = await audit(stub, tmp_path / "plain")
    divided = await Divided(stub, tmp_path / "divided").whole(5, part_lines=20)
    changes = [dict(one.summary["changes"], against=None) for one in (plain, divided)]
    assert changes[0] == changes[1]
    assert changes[0]["why_not"] is None
    assert divided.summary["changes"]["against"] == first.summary["run"]
    assert auditor.check_run(divided.folder).chain == (first.summary["run"],)
    latest = json.loads((divided.folder.parent / "latest.json").read_text())
    assert latest["runs"]["current"] == {"": divided.summary["run"]}


async def test_missing_range_is_a_hole_and_the_run_can_go_on(stub: StubServer, tmp_path: Path) -> None:
    stub.world.buckets[BUCKET] = sample_bucket(40)
    run = Divided(stub, tmp_path)
    begun = await run.begin(4)
    names = [one.id for one in begun.ranges]
    await run.ranges(name for name in names if name != "00001")
    part = await run.combine()
    assert not part.complete
    assert part.resume is not None
    assert part.resume.reason == f"1 range of {len(names)} not complete"
    assert part.resume.start_after == begun.ranges[0].stop_at
    assert any("range 00001" in words and "has not begun" in words for words in part.not_looked_at)
    assert not (tmp_path / f"bucket={BUCKET}" / "latest.json").exists()
    again = await run.begin(9, run.run_id)
    assert again == begun
    await run.ranges(["00001"])
    whole = await run.combine()
    assert (whole.complete, whole.resume) == (True, None)
    same(await audit(stub, tmp_path / "plain"), read_back(whole.to_dict()))
    with pytest.raises(RunComplete):
        await run.combine()
    with pytest.raises(RunComplete):
        await run.audit("00001")


def _file(out: Path, name: str) -> Path:
    """The file of this name in the one run folder below `out`."""
    (found,) = out.glob(f"bucket={BUCKET}/run=*/{name}")
    return found


async def test_run_that_lost_a_file_says_so(stub: StubServer, tmp_path: Path) -> None:
    stub.world.buckets[BUCKET] = sample_bucket(40)
    run = Divided(stub, tmp_path)
    await run.begin(3)
    await run.ranges(["00000", "00001"])
    gone = r"run\.json is gone, and the whole run is judged by it: start a new run"
    place = _file(tmp_path, "run.json")
    kept = place.read_bytes()
    place.unlink()
    with pytest.raises(RunDamaged, match=gone):
        await run.begin(3, run.run_id)
    place.write_bytes(kept)
    _file(tmp_path, "objects/part-00001-00000.jsonl.gz").unlink()
    summary = await run.combine()
    assert not summary.complete
    assert any("part-00001-00000.jsonl.gz is gone: start a new run" in words for words in summary.not_looked_at)
    value = json.loads(place.read_text())
    del value["ranges"][1]
    place.write_text(json.dumps(value))
    with pytest.raises(OutputError, match=r"run\.json is damaged"):
        await run.audit("00001")
    with pytest.raises(OutputError, match=r"run\.json is damaged"):
        await run.combine()
    place.unlink()
    with pytest.raises(RunDamaged, match=gone):
        await audit(stub, tmp_path, resume=run.run_id)


async def test_range_of_another_run_target_or_settings_is_refused(stub: StubServer, tmp_path: Path) -> None:
    stub.world.buckets[BUCKET] = sample_bucket(20)
    run = Divided(stub, tmp_path)
    await run.begin(2)
    other = Divided(stub, tmp_path, target=Target(BUCKET, "odd/"))
    other.run_id = run.run_id
    with pytest.raises(RunChanged, match="another target"):
        await other.audit("00001")
    changed = Divided(stub, tmp_path, trusted=frozenset({"123456789012"}))
    changed.run_id = run.run_id
    with pytest.raises(RunChanged, match="trusted"):
        await changed.audit("00001")
    with pytest.raises(RunChanged, match="trusted"):
        await changed.combine()
    other.run_id = "20260102T030405Z-0a1b2c"
    with pytest.raises(RunMissing):
        await other.audit("00001")
    with pytest.raises(UsageError, match="no range"):
        await run.audit("00009")
