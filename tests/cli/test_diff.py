"""The command `auditor diff`: each change by its kind, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auditor.cli.main import main
from auditor.model.target import Target
from tests.audit.test_changes import CLASSES, VERDICTS, keys, two_nights
from tests.support.audit_runs import audit
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer


async def test_changes_are_named_counted_and_written_out(
    stub: StubServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = await two_nights(stub, tmp_path, engine="direct")
    pair = ["diff", str(first.folder), str(second.folder)]
    assert main([*pair, "--format", "jsonl"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {(line["kind"], line["key"]) for line in lines if line["of"] == "verdict"} == keys(CLASSES)
    assert main([*pair, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["old"], found["new"]) == (first.summary["run"], second.summary["run"])
    assert found["changes"] == second.summary["changes"]
    assert found["changes"]["verdicts"] == VERDICTS
    assert main(pair) == 0
    table = capsys.readouterr().out
    assert "Objects     exposed: 25 new, 15 worsened, 15 improved" in table
    assert "private > exposed new/000" in table
    assert main(["diff", str(first.folder), str(first.folder)]) == 0
    assert "Changes     none" in capsys.readouterr().out
    other = await audit(stub, tmp_path, engine="direct", target=Target(BUCKET, prefix="new/"))
    assert main(["diff", str(first.folder), str(other.folder)]) == 2
    assert "compare two runs of one target" in capsys.readouterr().err
