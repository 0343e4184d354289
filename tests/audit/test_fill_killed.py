"""A fill that is killed at any moment leaves the run intact, and the one that goes on sends no recorded call again."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import auditor
from tests.audit.test_fill import fill, latest, mend
from tests.support.audit_runs import Result, audit, checkpoint
from tests.support.nights import timeless
from tests.support.paths import ROOT
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket

STEPS = 27
"""More than the writes of the whole fill."""


def killed(stub: StubServer, out: Path, before: Result, step: int) -> int:
    """Begin a fill in a process that dies before this write, and return its exit code."""
    command = [sys.executable, "-m", "tests.support.killed_fill", out, before.summary["run"], stub.url, step]
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, -9), done.stderr
    return done.returncode


async def quiet(stub: StubServer) -> None:
    """Wait until the stub has answered what the killed process left in its sockets."""
    same, calls = 0, -1
    while same < 10:
        same = same + 1 if len(stub.calls) == calls and not stub.in_flight else 0
        calls = len(stub.calls)
        await asyncio.sleep(0.02)


async def check_killed(stub: StubServer, bucket: StubBucket, place: Path, objects: int, steps: list[int]) -> list[int]:
    """Kill a fill before each of these writes, go on, and compare. Return the exit codes of the killed processes."""
    for number in range(objects):
        deny = {*(["acl"] if number % 3 == 0 else []), *(["head"] if number % 4 == 0 else [])}
        bucket.put(f"k{number:03}", b"x", acl="public-read" if number % 5 == 0 else "private", deny=deny)
    first = await audit(stub, place / "first")
    holes = {line["key"]: len(line["unread"]) for line in first.undecided}
    mend(bucket)
    anew = await audit(stub, place / "anew")
    codes = []
    for step in steps:
        out = place / f"{step}"
        shutil.copytree(place / "first", out)
        before = Result(first.summary, out / first.folder.relative_to(place / "first"))
        files = {path: path.read_bytes() for path in before.folder.rglob("*") if path.is_file()}
        codes.append(killed(stub, out, before, step))
        assert {path: path.read_bytes() for path in before.folder.rglob("*") if path.is_file()} == files
        found = [one for one in (out / f"bucket={BUCKET}").glob("run=*") if one != before.folder]
        state = checkpoint(out)
        ended = codes[-1] == 0 or (bool(found) and (found[0] / "summary.json").exists())
        assert ended or latest(out) == {"": first.summary["run"]}
        if ended:
            continue
        done = state["start_after"] if state else None
        await quiet(stub)
        stub.forget()
        filled = await fill(
            stub, out, before, resume=found[0].name[4:] if found and (found[0] / "run.json").exists() else None
        )
        assert stub.count("GetObjectAcl") + stub.count("HeadObject") == sum(
            facts for key, facts in holes.items() if done is None or key > done
        )
        assert timeless(filled.objects) == timeless(anew.objects)
        assert timeless(filled.findings) == timeless(anew.findings)
        assert filled.coverage == anew.coverage
        assert latest(out) == {"": filled.summary["run"]}
        assert auditor.check_run(filled.folder).exit_code == 0
        shutil.rmtree(out)
    return codes


async def test_killed_at_some_moments(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    assert await check_killed(stub, bucket, tmp_path, 30, [5, 17]) == [-9, -9]


@pytest.mark.slow
async def test_killed_before_each_write(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    codes = await check_killed(stub, bucket, tmp_path, 30, [*range(1, STEPS + 1)])
    assert codes.count(-9) >= 24
    assert codes[-1] == 0
