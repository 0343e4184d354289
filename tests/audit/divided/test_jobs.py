"""`auditor audit --jobs N`: several processes, one run folder, one limit; whatever ends one of them, or all."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

import auditor
from auditor.aio import loop as loops
from auditor.aio.stop import Stop
from auditor.audit.audit_run import Audit
from auditor.audit.begin_run import Division
from auditor.cli.main import main
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.model.target import Target
from auditor.runs.stores.local import LocalStore
from tests.audit.divided.test_combine import groups, same
from tests.audit.test_run_ends import wait_for
from tests.support.audit_runs import Result, audit, finish, start
from tests.support.servers.clients import BUCKET
from tests.support.servers.fixtures import stub_of
from tests.support.servers.samples import sample_bucket
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import BLACK_HOLE, latency
from tests.support.servers.world import World

SLOW: Final = 0.04
"""Seconds that each answer takes while processes are to be killed."""
FACTS: Final = ("acl", "head")
JOBS: Final = ("--jobs", "2", "--max-rate", "unlimited")


def children(parent: int) -> list[int]:
    """The processes that a process has begun and that have not ended."""
    with suppress(OSError):
        return [int(word) for word in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
    return []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def ended(pids: Sequence[int], seconds: float = 20) -> bool:
    """True once all these processes have ended."""
    deadline = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(alive, pids))


def run_id(out: Path) -> str:
    """The ID of the one run below `out`, which has a plan."""
    (found,) = out.glob(f"bucket={BUCKET}/run=*/run.json")
    return found.parent.name.removeprefix("run=")


@pytest.fixture
def stored(stub: StubServer) -> StubServer:
    stub.world.buckets[BUCKET] = sample_bucket(240)
    return stub


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The same bucket as one process audits it."""
    world = World()
    world.buckets[BUCKET] = sample_bucket(240)
    with stub_of(world) as stub:
        return asyncio.run(audit(stub, tmp_path_factory.mktemp("plain")))


def begun(stub: StubServer, out: Path, *flags: str, calls: int = 60) -> tuple[subprocess.Popen[str], list[int]]:
    """Begin a slow audit by two processes, and wait until both work. Return the first one, and the IDs of both."""
    stub.faults = [latency(SLOW)]
    stub.forget()
    child = start(stub, out, *JOBS, "--concurrency", "4", *flags, small_parts=True)
    wait_for(lambda: len(children(child.pid)) == 2 and len(stub.calls) > calls, child)
    return child, children(child.pid)


def whole(stub: StubServer, out: Path, *flags: str) -> Result:
    code, (result,), words = finish(start(stub, out, *flags, small_parts=True), 120)
    assert code == 4, words  # some samples are denied
    return result


def test_two_processes_have_the_results_of_one(stored: StubServer, plain: Result, tmp_path: Path) -> None:
    divided = whole(stored, tmp_path, *JOBS)
    assert len(json.loads((divided.folder / "run.json").read_text())["ranges"]) > 2
    same(plain, divided)
    assert groups(plain) == groups(divided)
    assert auditor.check_run(divided.folder).exit_code == 0


def test_killed_process_ends_the_command_with_the_line_that_resumes(
    stored: StubServer, plain: Result, tmp_path: Path
) -> None:
    child, began = begun(stored, tmp_path)
    os.kill(began[0], signal.SIGKILL)
    code, (part,), words = finish(child)
    assert (code, part.summary["complete"]) == (4, False)
    assert "not complete: the process that audits range 0" in words
    assert " was killed by signal 9; resume with: " in words
    assert f" --resume {run_id(tmp_path)}" in words
    assert ended(began)
    stored.faults = []
    result = whole(stored, tmp_path, "--resume", run_id(tmp_path), *JOBS)
    same(plain, result)
    assert auditor.check_run(result.folder).exit_code == 0


def test_process_that_is_killed_before_its_first_range_ends_the_run_in_order(
    stored: StubServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def kill(run_id: str) -> None:
        first = children(os.getpid())[0]
        os.kill(first, signal.SIGKILL)
        assert ended([first])

    settings = Settings(endpoint_url=stored.url, out=str(tmp_path), max_rate=None)
    places = Resources(store=LocalStore(tmp_path), ledger=None)
    ways = Division(8, least=1)
    audit = Audit(Target(BUCKET), settings, places, Stop(), jobs=2, division=ways, began=kill)
    summary = loops.run(audit.run())
    assert summary.resume is not None
    assert summary.resume.reason == "the process that audits range 00000 was killed by signal 9"
    assert "Traceback" not in capfd.readouterr().err


def test_processes_end_with_the_first_one_even_if_the_server_is_silent(stored: StubServer, tmp_path: Path) -> None:
    stored.faults = [lambda operation, key, nth: BLACK_HOLE if operation == "GetObjectAcl" else None]
    child = start(stored, tmp_path, *JOBS, small_parts=True)
    wait_for(lambda: len(children(child.pid)) == 2 and stored.count("GetObjectAcl") > 60, child)
    began = children(child.pid)
    child.kill()
    child.communicate()
    assert ended(began)  # a call takes 80 s until its last retry


def test_module_in_the_working_directory_is_not_run(
    stub: StubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.put(BUCKET, "key", b"x")
    for name in ("json", "importlib", "auditor"):
        (tmp_path / f"{name}.py").write_text(f"open('{name} was run', 'w')\nraise SystemExit(9)\n")
    monkeypatch.chdir(tmp_path)
    assert main(["audit", f"s3://{BUCKET}", "--endpoint-url", stub.url, "--only", "O02", "--jobs", "2"]) == 0
    assert [name for name in os.listdir(tmp_path) if name.endswith("was run")] == []


@pytest.mark.slow
def test_run_whose_first_process_is_killed_at_several_moments_goes_on(
    stored: StubServer, plain: Result, tmp_path: Path
) -> None:
    """All processes end with the first one, and each object is there once in the end."""
    resume: tuple[str, ...] = ()
    for calls in (60, 100, 200):
        child, began = begun(stored, tmp_path, *resume, calls=calls)
        os.kill(child.pid, signal.SIGKILL)
        child.communicate(timeout=30)
        assert ended(began)
        resume = ("--resume", run_id(tmp_path))
    stored.faults = []
    result = whole(stored, tmp_path, *resume, "--jobs", "3")
    same(plain, result)
    assert auditor.check_run(result.folder).exit_code == 0


@pytest.mark.slow
def test_signal_ends_all_processes_and_the_run_can_go_on(stored: StubServer, plain: Result, tmp_path: Path) -> None:
    child, began = begun(stored, tmp_path)
    child.send_signal(signal.SIGINT)
    code, (part,), words = finish(child)
    assert code == 4
    assert (part.summary["complete"], part.summary["resume"]["reason"]) == (False, "stopped by SIGINT")
    assert "--jobs 2" in words
    assert ended(began)
    stored.faults = []
    result = whole(stored, tmp_path, "--resume", run_id(tmp_path))  # one process goes on with a divided run, too
    same(plain, result)
    assert auditor.check_run(result.folder).exit_code == 0


@pytest.mark.slow
def test_limit_of_calls_is_one_for_all_processes(stored: StubServer, plain: Result, tmp_path: Path) -> None:
    code, (part,), _ = finish(start(stored, tmp_path, *JOBS, "--max-calls", "300", small_parts=True), 120)
    assert code == 4
    assert not part.summary["complete"]
    assert 150 < len(stored.requests) <= 300
    result = whole(stored, tmp_path, "--resume", run_id(tmp_path), *JOBS)
    for one, other in zip(plain.undated, result.undated, strict=True):
        # A call that was retried may take the last one of an object: that fact is then unread, and told as such.
        assert one == other or any("MaxCalls" in other[fact].get("unread", {}).get("code", "") for fact in FACTS)


def test_impossible_numbers_and_combinations_are_refused(
    stored: StubServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = [f"s3://{BUCKET}", "--endpoint-url", stored.url, "--out", str(tmp_path)]
    assert main(["audit", *target, "--jobs", "0"]) == 2
    assert "--jobs 0 is not valid: give a number of processes from 1 to 64" in capsys.readouterr().err
    assert main(["audit", "--fill", str(tmp_path), "--jobs", "2"]) == 2
    assert "--jobs cannot be combined with --fill" in capsys.readouterr().err
    assert main(["audit", "--all-buckets", "--jobs", "2", "--out", str(tmp_path)]) == 2
    assert "--jobs" in capsys.readouterr().err


def test_processes_that_were_begun_for_nothing_are_ended(
    stub: StubServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["s3://no-such-bucket", "--endpoint-url", stub.url, "--out", str(tmp_path), "--jobs", "2"]
    assert main(["audit", *words]) == 1
    assert "no-such-bucket" in capsys.readouterr().err
    assert children(os.getpid()) == []


def test_run_of_one_range_is_resumed_by_several_processes(stored: StubServer, plain: Result, tmp_path: Path) -> None:
    cut = asyncio.run(audit(stored, tmp_path, max_calls=60))
    result = whole(stored, tmp_path, "--resume", cut.summary["run"], *JOBS)
    same(plain, result)
    assert auditor.check_run(result.folder).exit_code == 0
