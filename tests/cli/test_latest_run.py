"""A target in the place of a run folder: each command reads the latest complete run of it below `out`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from auditor.cli.main import main
from auditor.model.target import Target
from tests.support.audit_runs import Result, audit
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer

PREFIX = "photos/"


@pytest.fixture
def runs(stub: StubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Result]:
    """Two runs of the bucket, and a later one of a prefix, below ./auditor-runs."""
    monkeypatch.chdir(tmp_path)
    stub.world.add(BUCKET)
    stub.put(BUCKET, "photos/a.jpg", b"x", acl="public-read")
    stub.put(BUCKET, "secret", b"x")
    out = tmp_path / "auditor-runs"
    targets = (Target(BUCKET), Target(BUCKET), Target(BUCKET, PREFIX))
    return [asyncio.run(audit(stub, out, target=target)) for target in targets]


@pytest.mark.parametrize(("target", "which"), [(f"s3://{BUCKET}", 1), (f"s3://{BUCKET}/{PREFIX}", 2)])
def test_the_latest_run_of_a_target(
    runs: list[Result], target: str, which: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", target, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"] == runs[which].summary["run"]


@pytest.mark.parametrize(
    "command",
    [
        ["export", f"s3://{BUCKET}", "--format", "jsonl"],
        ["what-if", f"s3://{BUCKET}", "--acls-off"],
        ["fix-kit", f"s3://{BUCKET}", "--out", "kit"],
        ["judge", f"s3://{BUCKET}", "--ignore", "O02", "--fail-on", "never"],
        ["diff", f"arn:aws:s3:::{BUCKET}", f"s3://{BUCKET}"],
        ["explain", f"s3://{BUCKET}/photos/a.jpg", "--run", f"s3://{BUCKET}"],
        ["who", "http://acs.amazonaws.com/groups/global/AllUsers", "--run", f"s3://{BUCKET}"],
    ],
    ids=lambda command: str(command[0]),
)
def test_every_command_that_reads_a_run(runs: list[Result], command: list[str]) -> None:
    assert main(command) == 0


def test_a_target_that_no_run_covers(runs: list[Result], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", f"s3://{BUCKET}/photos/a"]) == 2
    said = capsys.readouterr().err
    assert f"no complete run of 's3://{BUCKET}/photos/a' is below" in said
    assert "audit it first, or give a run folder" in said


def test_a_damaged_latest_json_is_named(runs: list[Result], capsys: pytest.CaptureFixture[str]) -> None:
    (runs[0].folder.parent / "latest.json").write_text("[]")
    assert main(["check", f"s3://{BUCKET}"]) == 1
    assert "latest.json is damaged" in capsys.readouterr().err


def test_a_later_run_over_versions_is_the_latest_one(
    stub: StubServer, runs: list[Result], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    second = later = runs[1]
    while later.summary["run"][:16] <= second.summary["run"][:16]:  # the IDs of runs tell them apart by the second
        later = asyncio.run(audit(stub, tmp_path / "auditor-runs", target=Target(BUCKET, versions=True)))
    assert main(["check", f"s3://{BUCKET}", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"] == later.summary["run"]
