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


def test_every_command_that_reads_a_run(runs: list[Result]) -> None:
    bucket = f"s3://{BUCKET}"
    for command in (
        ["export", bucket, "--format", "jsonl"],
        ["what-if", bucket, "--acls-off"],
        ["fix-kit", bucket, "--out", "kit"],
        ["judge", bucket, "--ignore", "O02", "--fail-on", "never"],
        ["diff", f"arn:aws:s3:::{BUCKET}", bucket],
        ["explain", f"{bucket}/photos/a.jpg", "--run", bucket],
        ["who", "http://acs.amazonaws.com/groups/global/AllUsers", "--run", bucket],
    ):
        assert main(command) == 0, command


def test_a_target_that_no_run_covers(runs: list[Result], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", f"s3://{BUCKET}/photos/a"]) == 2
    said = capsys.readouterr().err
    assert f"no complete run of 's3://{BUCKET}/photos/a' is below" in said
    assert "audit it first, or give a run folder" in said
    (runs[0].folder.parent / "latest.json").write_text("[]")
    assert main(["check", f"s3://{BUCKET}"]) == 1
    assert "latest.json is damaged" in capsys.readouterr().err


def test_the_latest_run_of_a_target(
    stub: StubServer, runs: list[Result], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def latest(target: str) -> str:
        assert main(["check", target, "--format", "json"]) == 0
        return str(json.loads(capsys.readouterr().out)["run"])

    assert latest(f"s3://{BUCKET}") == runs[1].summary["run"]
    assert latest(f"s3://{BUCKET}/{PREFIX}") == runs[2].summary["run"]
    second = later = runs[1]
    while later.summary["run"][:16] <= second.summary["run"][:16]:  # the IDs of runs tell them apart by the second
        later = asyncio.run(audit(stub, tmp_path / "auditor-runs", target=Target(BUCKET, versions=True)))
    assert latest(f"s3://{BUCKET}") == later.summary["run"]
