"""Commands on run folders that somebody has made hostile: a sentence, little memory, and nothing written elsewhere."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.audit_runs import audit
from tests.support.hostile_folders import CHECKPOINT, FILES, attacks
from tests.support.paths import ROOT
from tests.support.servers.clients import BUCKET
from tests.support.servers.fixtures import stub_of
from tests.support.servers.samples import sample_bucket
from tests.support.servers.world import World

MOST: int = 256 * 1024
"""KiB of memory that a command may have at most."""
CHILD = """
import json, signal, sys
from pathlib import Path
from auditor.cli.main import main
run, below, commands = sys.argv[1:]
for command in json.loads(commands):
    for place in sorted(Path(below).iterdir()):
        copy = place / Path(run).parent.name / Path(run).name  # judge leaves a run of its own beside it
        words = {"RUN": str(copy), "SOUND": run}
        signal.alarm(60)
        try:
            code = main([words.get(word, word) for word in command])
        except SystemExit as end:
            code = end.code
        status = Path("/proc/self/status").read_text()  # getrusage() has the peak of the process before exec, too
        peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
        print(f"## {code} {peak} {command[0]} {place.name}", flush=True)
"""
TWO_COUNTS = "SELECT count(*), max(key) FROM objects UNION ALL SELECT count(*), max(key) FROM findings"
READING = [["check", "RUN"], ["diff", "SOUND", "RUN"], ["explain", f"s3://{BUCKET}/key", "--run", "RUN"]]
if find_spec("duckdb"):
    READING.append(["sql", "RUN", TWO_COUNTS])
WRITING = [["report", "RUN"], ["judge", "RUN"], ["fix-kit", "RUN", "--out", "kit"]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a sound run of 100 objects. The folder `hostile` has a copy of it for each attack."""
    place = tmp_path_factory.mktemp("runs")
    world = World()
    world.buckets[BUCKET] = sample_bucket(100)
    with stub_of(world) as stub:
        run = asyncio.run(audit(stub, place / "sound")).folder
    for number, (name, change) in enumerate(attacks()):
        copy = place / "hostile" / f"{number:02} {name.replace('/', ' ')}" / run.parent.name / run.name
        shutil.copytree(run, copy)
        change(copy)
    yield run
    shutil.rmtree(place)


@pytest.mark.parametrize("commands", [READING, pytest.param(WRITING, marks=pytest.mark.slow)], ids=["read", "write"])
def test_hostile_folder_costs_little_memory_and_ends_in_a_sentence(
    run: Path, commands: list[list[str]], tmp_path: Path
) -> None:
    before = {path: path.lstat().st_mtime_ns for path in run.rglob("*")}
    names = {path.relative_to(run).as_posix() for path in before if path.is_file() and path.name[0] != "."}
    assert names - {"report.html"} <= {*FILES, *(name for name in names if name.endswith(".gz"))}  # each is attacked
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(run), str(run.parents[2] / "hostile"), json.dumps(commands)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    ends = [line.split(" ", 4)[1:] for line in child.stdout.splitlines() if line.startswith("## ")]
    assert len(ends) == len(commands) * len(list(attacks())), child.stderr[-2000:]
    assert [end for end in ends if int(end[1]) > MOST] == []
    assert [end for end in ends if end[0] not in ("0", "1", "2", "4")] == []
    assert "Traceback" not in child.stderr
    assert "bug" not in child.stderr
    killed = {end[3] for end in ends if CHECKPOINT.replace("/", " ") in end[3]}
    assert [end for end in ends if end[2] == "check" and end[0] != ("4" if end[3] in killed else "1")] == []
    assert len(killed) == 6
    assert {path: path.lstat().st_mtime_ns for path in run.rglob("*")} == before
    assert {path.name for path in tmp_path.iterdir()} <= {"kit", "auditor-runs", "report.html"}
