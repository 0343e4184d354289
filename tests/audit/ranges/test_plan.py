"""Plans of real buckets: by listing, by the parts of the last run, and as a command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from auditor.audit.plan_ranges import RangePlan, plan_by_listing, plan_from_run
from auditor.cli.main import main
from auditor.config.settings import Settings
from auditor.model.target import Target
from auditor.runs.reading import RunReader
from auditor.runs.segment import Segment
from auditor.runs.stores.local import LocalStore
from auditor.runs.tally import Tally
from tests.audit.ranges.key_sets import keys_of_set
from tests.support.audit_runs import audit
from tests.support.killed_run import end
from tests.support.odd_keys import ODD_KEYS
from tests.support.samples.reports import RUN, sample_summary
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket

TARGET = Target(BUCKET)


def written(store: LocalStore, keys: list[str], part_lines: int) -> RunReader:
    """A complete run with a line for each key."""
    with Segment(store, BUCKET, RUN, tally=Tally(), part_lines=part_lines) as folder:
        folder.prepare()
        for key in keys:
            if folder.write(key, None, json.dumps({"key": key}).encode() + b"\n"):
                folder.flush()
        end(store, folder, sample_summary(), update_latest=True)
    return RunReader(store, BUCKET, RUN)


def keys_in(plan: RangePlan, keys: list[str]) -> list[list[str]]:
    parts = [Target(BUCKET, start_after=one.start_after, stop_at=one.stop_at) for one in plan.ranges]
    return [[key for key in keys if part.covers(key)] for part in parts]


def test_ranges_end_with_parts_that_end_near_and_these_are_not_read(tmp_path: Path) -> None:
    keys = keys_of_set("uuids", 4000)
    run = written(LocalStore(tmp_path), keys, 1010)
    for file in (tmp_path / run.path).glob("objects/*"):
        file.write_bytes(b"damaged")
    plan = plan_from_run(TARGET, run, 4)
    assert plan is not None
    assert [one.keys for one in plan.ranges] == [1010, 1010, 1010, 970]
    assert [len(part) for part in keys_in(plan, keys)] == [1010, 1010, 1010, 970]
    assert plan_from_run(TARGET, run, 5) is None  # its ends lie within parts


def test_a_run_without_a_seal_or_a_whole_part_or_a_key_gives_no_plan(tmp_path: Path) -> None:
    assert plan_from_run(TARGET, written(LocalStore(tmp_path / "empty"), [], 2), 3) is None
    run = written(LocalStore(tmp_path), ["a", "b", "c"], 2)
    folder = tmp_path / run.path
    (folder / "objects" / "part-00000-00000.jsonl.gz").write_bytes(b"damaged")
    assert plan_from_run(TARGET, run, 3) is None
    (folder / "seal.json").unlink()
    assert plan_from_run(TARGET, run, 3) is None


async def test_audits_of_the_ranges_are_the_audit_of_the_whole(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    sets = ("one giant prefix", "percent escapes", "control characters")
    keys = sorted({*ODD_KEYS.values(), *(key for name in sets for key in keys_of_set(name, 40))})
    for key in keys:
        stub.put(BUCKET, key, b"data")
    whole = await audit(stub, tmp_path / "whole")
    stub.forget()
    plan = await plan_by_listing(TARGET, Settings(endpoint_url=stub.url, engine="direct"), 8)
    assert [key for part in keys_in(plan, keys) for key in part] == keys
    assert (len(plan.ranges), plan.keys) == (8, len(keys))
    assert 0 < plan.calls <= len(stub.requests)
    lines: list[Any] = []
    for one in plan.ranges:
        part = Target(BUCKET, start_after=one.start_after, stop_at=one.stop_at)
        result = await audit(stub, tmp_path / "parts", target=part)
        assert result.coverage["listed"] == one.keys
        lines += result.undated
    assert lines == whole.undated


Plan = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(
    stub: StubServer, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Plan:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main([*arguments, "--endpoint-url", stub.url])
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return call


def test_the_command_takes_the_last_run_if_there_is_one(stub: StubServer, command: Plan) -> None:
    for number in range(20):
        stub.put(BUCKET, f"{number:02}", b"data")
    code, out, _ = command("plan", f"s3://{BUCKET}", "--ranges", "2", "--format", "json")
    plan = json.loads(out)
    assert (code, plan["run"], plan["exact"], plan["keys"]) == (0, None, True, 20)
    assert plan["ranges"] == [
        {"start_after": None, "stop_at": "09", "keys": 10},
        {"start_after": "09", "stop_at": None, "keys": 10},
    ]
    run = json.loads(command("audit", f"s3://{BUCKET}", "--format", "json")[1])["run"]
    stub.forget()
    again = json.loads(command("plan", f"s3://{BUCKET}", "--ranges", "2", "--format", "json")[1])
    assert (again["run"], again["ranges"], again["calls"]) == (run, plan["ranges"], {"list": 0})
    assert stub.requests == []
    listed = json.loads(command("plan", f"s3://{BUCKET}", "--ranges", "2", "--listing", "--format", "json")[1])
    assert (listed["run"], listed["ranges"]) == (None, plan["ranges"])
    part = json.loads(command("plan", f"s3://{BUCKET}/1", "--start-after", "12", "--format", "json")[1])
    assert (part["keys"], part["ranges"][0]["start_after"], part["target"]["prefix"]) == (7, "12", "1")
