"""One Ctrl-C ends a command soon, even if a server answers nothing any more."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event

import pytest

from tests.cli.conftest import Run
from tests.support.paths import ROOT
from tests.support.servers.accounts import OWN, AccountsServer, role_of
from tests.support.servers.clients import BUCKET
from tests.support.servers.forwarding import Silencing
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import BLACK_HOLE, Fault, Kind


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    keys = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_REGION": "us-east-1"}
    return subprocess.Popen(
        [sys.executable, "-m", "auditor", *arguments],
        cwd=folder,
        env=os.environ | keys | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def interrupted(child: subprocess.Popen[str], when: Callable[[], bool]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command that gets one SIGINT."""
    with child:
        until = time.monotonic() + 60
        while not when() and child.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        try:
            out, err = child.communicate(timeout=25)  # a call takes 80 s until its last retry
        except subprocess.TimeoutExpired:
            child.kill()
            raise
    return child.returncode, out, err


def test_bucket_that_does_not_answer_the_first_questions(stub: StubServer, tmp_path: Path) -> None:
    stub.put(BUCKET, "key", b"x")
    stub.faults = [BLACK_HOLE]
    child = start(tmp_path, "audit", f"s3://{BUCKET}", "--endpoint-url", stub.url)
    code, out, err = interrupted(child, lambda: stub.calls != [])
    assert (code, out) == (4, "")
    assert f"s3://{BUCKET} did not answer before the end (stopped by SIGINT)" in err


def test_bucket_that_falls_silent_in_mid_run_leaves_a_run_to_go_on_with(
    run: Run, stub: StubServer, tmp_path: Path
) -> None:
    for number in range(9):
        stub.put(BUCKET, f"{number}", b"x")
    stub.faults = [lambda operation, key, nth: BLACK_HOLE if key >= "5" else None]
    flags = ("--endpoint-url", stub.url, "--concurrency", "1", "--format", "json")
    child = start(tmp_path, "audit", f"s3://{BUCKET}", *flags)
    code, out, err = interrupted(child, lambda: any(logged.key == "5" for logged in stub.requests))
    summary = json.loads(out)
    assert (code, summary["coverage"]["listed"], summary["resume"]["start_after"]) == (4, 5, "4")
    assert f"--resume {summary['run']}" in err
    stub.faults = []
    _, out, _ = run("audit", f"s3://{BUCKET}", *flags, "--resume", summary["run"])
    assert json.loads(out)["coverage"]["listed"] == 9


@pytest.mark.slow
def test_estate_names_each_bucket_that_was_not_reached_and_goes_on(tmp_path: Path) -> None:
    names = [f"bucket-{number:02}" for number in range(16)]
    with AccountsServer() as server:
        server.give(OWN, *names)
        for name in names:
            server.put(name, "key", b"x")
        server.faults = [lambda operation, key, nth: Fault(Kind.DELAY, seconds=0.15)]
        flags = ("--endpoint-url", server.url, "--format", "json", "--only", "O02")
        child = start(tmp_path, "audit", "--all-buckets", *flags)
        ended = tmp_path / "auditor-runs"
        code, out, err = interrupted(child, lambda: len(list(ended.glob("bucket=*/run=*/summary.json"))) > 3)
        first = json.loads(out.splitlines()[-1])
        counts = first["counts"]
        assert (code, counts["buckets"]) == (4, 16)
        assert counts["audited"] > 3
        assert counts["holes"] == 16 - counts["audited"] > 0
        assert first["stopped"] == "stopped by SIGINT"
        said = [one["sentence"] for one in first["buckets"] if one["outcome"] == "hole"]
        assert [words for words in said if "stopped by SIGINT" not in words] == []
        assert json.loads((ended / f"account={OWN}" / "estate.json").read_text()) == first
        assert f"--all-buckets --only O02 --endpoint-url {server.url}" in err
        assert f"--resume {first['estate']}" in err
        server.faults = []
        server.forget()
        with start(tmp_path, "audit", "--all-buckets", *flags, "--resume", first["estate"]) as resumed:
            out, _ = resumed.communicate(timeout=60)
        second = json.loads(out.splitlines()[-1])
        assert (resumed.returncode, second["counts"]["audited"]) == (0, 16)
        done = {one["bucket"] for one in first["buckets"] if one["outcome"] == "audited"}
        listed = [logged.bucket for logged in server.requests if logged.operation == "ListObjectsV2"]
        assert not done & set(listed)
        assert second["coverage"]["audited"] == 16


def test_account_that_does_not_answer_is_a_hole(tmp_path: Path) -> None:
    (tmp_path / "estate.toml").write_text(f'[[accounts]]\nrole = "{role_of("111122223333")}"\n')
    with AccountsServer() as behind, Silencing(behind.url) as server:
        asked = Event()

        def silent(method: str, target: str, headers: Mapping[str, str]) -> bool:
            asked.set()
            return True

        server.silent = silent
        child = start(tmp_path, "audit", "--estate", "estate.toml", "--endpoint-url", server.url)
        code, out, _ = interrupted(child, asked.is_set)
    assert code == 4
    assert "0 buckets in 1 account = 0 audited + 0 excluded + 0 holes; 1 of the accounts is a hole" in out
    found = json.loads((tmp_path / "auditor-runs" / "estate=estate" / "estate.json").read_text())
    assert found["accounts"][0]["hole"] == "account 111122223333 was not asked: stopped by SIGINT"


@pytest.mark.slow
def test_estate_that_is_killed_leaves_every_bucket_as_a_hole(tmp_path: Path) -> None:
    with AccountsServer() as server:
        server.give(OWN, *(f"bucket-{number:02}" for number in range(6)))
        server.faults = [lambda operation, key, nth: Fault(Kind.DELAY, seconds=0.15)]
        runs = tmp_path / "auditor-runs"
        report = runs / f"account={OWN}" / "estate.json"
        with start(tmp_path, "audit", "--all-buckets", "--endpoint-url", server.url) as child:
            until = time.monotonic() + 60
            while not list(runs.glob("bucket=*/run=*/summary.json")) and time.monotonic() < until:
                time.sleep(0.02)
            child.kill()
        found = json.loads(report.read_text())
        assert (found["complete"], found["exit_code"], found["counts"]["holes"]) == (False, 4, 6)
        server.faults = []
        flags = ("--endpoint-url", server.url, "--resume", found["estate"], "--format", "json")
        with start(tmp_path, "audit", "--all-buckets", *flags) as resumed:
            resumed.communicate(timeout=60)
        assert json.loads(report.read_text())["counts"]["audited"] == 6


def test_object_without_an_answer_is_given_up(run: Run, stub: StubServer, tmp_path: Path) -> None:
    stub.put(BUCKET, "key", b"x")
    flags = (f"s3://{BUCKET}", "--endpoint-url", stub.url, "--ledger", "sqlite:digests.db")
    assert run("hash", *flags)[0] == 0
    stub.forget()
    stub.faults = [lambda operation, key, nth: BLACK_HOLE if operation == "GetObject" else None]
    code, out, err = interrupted(start(tmp_path, "verify", *flags), lambda: stub.count("GetObject") > 0)
    assert code == 4
    assert "HOLE: the run did not finish\ncomplete: NO (stopped by SIGINT)" in out, err
