"""Everything that reads a run folder reads that of a divided run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest

import auditor
from auditor.aio.stop import Stop
from auditor.cli.fill import fill_audit
from auditor.cli.main import main
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.runs.reading import RunReader
from tests.audit.divided.test_combine import groups, same
from tests.audit.test_changes import night
from tests.audit.test_fill import mend
from tests.support.audit_runs import Result, audit, check, read_back
from tests.support.divided_runs import Divided
from tests.support.servers.clients import BUCKET
from tests.support.servers.fixtures import stub_of
from tests.support.servers.stub import StubServer
from tests.support.servers.world import World


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the same bucket is audited undivided, and in five ranges of small parts."""
    out, world = tmp_path_factory.mktemp("pair"), World()
    world.buckets[BUCKET] = night(0)
    with stub_of(world) as stub:
        asyncio.run(audit(stub, out / "plain", part_lines=20))
        asyncio.run(Divided(stub, out / "divided").whole(5, part_lines=20))
    return out


@pytest.fixture
def pair(kept: Path) -> tuple[Result, Result]:
    """Both runs, which no test changes."""
    plain, divided = (next((kept / name).glob("bucket=*/run=*/summary.json")) for name in ("plain", "divided"))
    return read_back(json.loads(plain.read_text())), read_back(json.loads(divided.read_text()))


async def test_judged_again(pair: tuple[Result, Result], tmp_path: Path) -> None:
    made = [
        await asyncio.to_thread(auditor.judge_run, run.folder, out=str(tmp_path / f"again{number}"))
        for number, run in enumerate(pair)
    ]
    plain, divided = (check(read_back(one.summary.to_dict())) for one in made if one.summary is not None)
    same(plain, divided, "not_looked_at")  # it names the run
    assert groups(plain) == groups(divided)
    assert auditor.check_run(divided.folder).exit_code == 0


async def test_compared_with_the_undivided_run(pair: tuple[Result, Result]) -> None:
    old, new = (auditor.open_run(run.folder) for run in pair)
    assert await asyncio.to_thread(lambda: list(auditor.diff(old, new))) == []


COMMANDS: Final = {
    "what-if": ["--acls-off", "--format", "json"],
    "export": ["--format", "csv"],
    "report": ["--out", "-"],
    "check": [],
    "sql": ["SELECT count(*) FROM objects", "--format", "csv"],
}


def test_commands(pair: tuple[Result, Result], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for command, words in (COMMANDS | {"fix-kit": ["--out", str(tmp_path / "kit")]}).items():
        assert main([command, str(pair[1].folder), *words]) in (0, 3, 4), command
        assert capfd.readouterr().out, command


def test_explained(pair: tuple[Result, Result]) -> None:
    for key in ("dark/002", "uploaded", "worsened/003"):
        found = [_explained(run, key) for run in pair]
        assert found[0] == found[1]


def _explained(run: Result, key: str) -> list[Any]:
    try:
        return [one.access for one in auditor.explain(f"s3://{BUCKET}/{key}", run=run.folder)]
    except auditor.AuditorError as error:
        return [type(error)]


async def test_filled(stub: StubServer, tmp_path: Path) -> None:
    stub.world.buckets[BUCKET] = night(0)
    run = Divided(stub, tmp_path)
    first = await run.whole(5, part_lines=20)
    assert first.coverage["undecided"]
    mend(stub.world.buckets[BUCKET])
    with_holes = RunReader(run.places.store, BUCKET, first.summary["run"])
    settings = Settings(endpoint_url=stub.url, out=str(tmp_path), max_rate=None)
    summary = await fill_audit(with_holes, settings, Resources(store=run.places.store), Stop()).run()
    filled = check(read_back(summary.to_dict()))
    assert filled.coverage["undecided"] == 0
    whole = await audit(stub, tmp_path / "plain")
    assert filled.summary["verdicts"] == whole.summary["verdicts"]
    assert [(line["key"], line["verdict"]) for line in filled.objects] == [
        (line["key"], line["verdict"]) for line in whole.objects
    ]
