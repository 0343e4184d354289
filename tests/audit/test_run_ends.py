"""How runs end: killed, stopped by a signal and resumed; or refused at once with one clear sentence."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from auditor.cli.main import main
from tests.support.audit_runs import Result, check, checkpoint, finish, read_back, read_parts, start, without
from tests.support.engine_names import OURS_FIRST
from tests.support.servers.clients import BUCKET
from tests.support.servers.samples import sample_bucket
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import (
    ACCESS_DENIED,
    BLACK_HOLE,
    EXPIRED_TOKEN,
    INVALID_ACCESS_KEY,
    Fault,
    Plan,
    error,
    latency,
)
from tests.support.servers.world import StubBucket

COUNT: Final = 160
SLOW: Final = 0.04
"""Seconds that each answer takes while a run is to be interrupted."""
WholeRun = Callable[..., Result]


@pytest.fixture
def samples(stub: StubServer) -> StubBucket:
    """The stub's bucket with objects of every kind, and versions of some."""
    made = stub.world.buckets[BUCKET] = sample_bucket(COUNT)
    made.versioning = "Enabled"
    for number in range(100, 160):
        made.put(f"plain/{number:07d}.txt", b"newer")
        if number % 10 == 0:
            made.delete(f"plain/{number:07d}.txt")
    return made


def wait_for(condition: Callable[[], object], child: subprocess.Popen[str]) -> None:
    """Until the condition holds; fails when the child ends before."""
    deadline = time.monotonic() + 60
    try:
        while not condition():
            assert child.poll() is None, child.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
    except BaseException:
        child.kill()
        child.communicate()
        raise


@pytest.fixture
def whole_run(stub: StubServer, capfd: pytest.CaptureFixture[str]) -> WholeRun:
    """Audit in this process, with flags of the command, and return the checked run."""

    def call(out: Path, *flags: str) -> Result:
        flags = ("--endpoint-url", stub.url, "--out", str(out), "--format", "json", *flags)
        assert main(["audit", f"s3://{BUCKET}", *flags]) in (0, 3, 4)
        return check(read_back(json.loads(capfd.readouterr().out)))

    return call


def same(one: Result, other: Result) -> None:
    """Everything about the objects is equal, whatever happened on the way."""
    assert one.undated == other.undated
    assert sorted(map(str, without(one.findings, "since"))) == sorted(map(str, without(other.findings, "since")))
    assert one.undecided == other.undecided
    for part in ("complete", "coverage", "verdicts", "findings", "rules", "rules_undecided", "unread"):
        assert one.summary[part] == other.summary[part]


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "flags"), [("direct", ()), ("boto3", ("--versions",))])
def test_killed_and_resumed_each_object_is_there_once(
    stub: StubServer, samples: StubBucket, whole_run: WholeRun, tmp_path: Path, engine: str, flags: tuple[str, ...]
) -> None:
    flags = (*flags, "--engine", engine, "--concurrency", "8")
    quiet = whole_run(tmp_path / "quiet", *flags)
    out = tmp_path / "killed"
    stub.faults = [latency(SLOW)]
    child = start(stub, out, *flags, small_parts=True)
    wait_for(lambda: (checkpoint(out) or {"next_part": 0})["next_part"] >= 2, child)
    os.kill(child.pid, signal.SIGKILL)
    assert finish_killed(child) == -signal.SIGKILL
    assert not (out / f"bucket={BUCKET}" / "latest.json").exists()
    state = checkpoint(out)
    assert state is not None

    stub.faults = []
    stub.forget()
    code, (resumed,), _ = finish(start(stub, out, *flags, "--resume", state["run"], small_parts=True))
    assert code == 4  # some samples are denied
    assert resumed.summary["run"] == state["run"]
    same(resumed, quiet)
    assert min(logged.key for logged in stub.requests if logged.key) > state["start_after"]
    latest = json.loads((out / f"bucket={BUCKET}" / "latest.json").read_text())
    assert [run for runs in latest["runs"].values() for run in runs.values()] == [state["run"]]


def finish_killed(child: subprocess.Popen[str]) -> int:
    child.communicate(timeout=30)
    return child.returncode


def test_signal_finishes_what_is_in_flight_and_the_run_can_go_on(
    stub: StubServer, samples: StubBucket, whole_run: WholeRun, tmp_path: Path
) -> None:
    quiet = whole_run(tmp_path / "quiet")
    out = tmp_path / "stopped"
    stub.forget()
    stub.faults = [latency(SLOW)]
    child = start(stub, out, "--concurrency", "4")
    wait_for(lambda: stub.count("HeadObject") > 20, child)
    child.send_signal(signal.SIGINT)
    code, (stopped,), err = finish(child)
    assert code == 4
    assert "SIGINT" in err
    assert not stopped.summary["complete"]
    assert 0 < stopped.coverage["listed"] < quiet.coverage["listed"]
    assert stopped.summary["resume"]["reason"] == "stopped by SIGINT"
    assert stopped.undated == quiet.undated[: len(stopped.objects)]
    assert f"--resume {stopped.summary['run']}" in err

    stub.faults = []
    same(whole_run(out, "--resume", stopped.summary["run"]), quiet)


def test_second_signal_gives_up_what_is_in_flight_too(
    stub: StubServer, samples: StubBucket, whole_run: WholeRun, tmp_path: Path
) -> None:
    quiet = whole_run(tmp_path / "quiet")
    out = tmp_path / "stopped"
    stub.forget()
    stub.faults = [latency(SLOW)]
    child = start(stub, out, "--concurrency", "4")
    wait_for(lambda: stub.count("HeadObject") > 20, child)
    stub.faults = [latency(3600)]
    stub.forget()
    # All four objects in flight hang now: each of these calls began after the others could still be answered.
    wait_for(lambda: stub.count("HeadObject") + stub.count("GetObjectAcl") >= 4, child)
    child.send_signal(signal.SIGTERM)
    assert child.stderr is not None
    for line in child.stderr:
        if "repeat the signal to stop at once" in line:
            break  # two signals that arrive together are one
    child.send_signal(signal.SIGTERM)
    code, results, err = finish(child)
    assert (code, results) == (4, [])
    assert "stopped at once; what was written is kept" in err
    state = checkpoint(out)
    assert state is not None
    assert state["start_after"] is not None

    stub.faults = []
    same(whole_run(out, "--resume", state["run"]), quiet)


Sentence = Callable[..., str]


@pytest.fixture
def sentence(stub: StubServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Sentence:
    """Audit in this process, expect exit code 1, and return the one line on stderr that says why."""

    def call(*flags: str, target: str = f"s3://{BUCKET}", code: int = 1) -> str:
        flags = ("--endpoint-url", stub.url, "--out", str(tmp_path / "runs"), *flags)
        assert main(["audit", target, *flags]) == code
        captured = capfd.readouterr()
        assert captured.out == ""
        (line,) = (line for line in captured.err.splitlines() if ": run " not in line)  # but for the run's ID
        assert line.startswith("auditor: ")
        assert "bug" not in line
        return line

    return call


def only(operation: str, fault: Fault) -> Plan:
    return lambda asked, key, nth: fault if asked == operation else None


SENTENCES: Final[dict[str, tuple[Plan | Fault | None, tuple[str, ...]]]] = {
    "grant s3:ListBucket": (only("ListObjectsV2", ACCESS_DENIED), ()),
    "grant s3:ListBucketVersions": (only("ListObjectVersions", ACCESS_DENIED), ("--versions",)),
    "the credentials have expired": (EXPIRED_TOKEN, ()),
    "were refused": (INVALID_ACCESS_KEY, ()),
    "there is no bucket named": (only("GetObjectAcl", error(404, "NoSuchBucket")), ()),
    "in another region": (error(301, "PermanentRedirect"), ()),
    "http://127.0.0.1:1 cannot be reached (ConnectionError)": (None, ("--endpoint-url", "http://127.0.0.1:1")),
    "cannot be reached (Timeout)": (BLACK_HOLE, ()),
}
"""By the words that tell a run's end: the fault that ends it, and the flags of the command."""


@pytest.mark.parametrize("engine", OURS_FIRST)
def test_one_clear_sentence(
    stub: StubServer, bucket: StubBucket, sentence: Sentence, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    monkeypatch.setenv("AUDITOR_FIRST_ANSWER", "0.2")
    monkeypatch.setenv("AUDITOR_RETRY_SECONDS", "6")
    monkeypatch.setenv("AUDITOR_RETRY_ATTEMPTS", "2")
    bucket.put("k")
    assert "there is no bucket named 'nowhere'" in sentence("--engine", engine, target="s3://nowhere")
    for words, (fault, flags) in SENTENCES.items():
        stub.faults = [] if fault is None else [fault]
        assert words in sentence("--engine", engine, *flags)


def test_credentials_that_expire_on_the_way(stub: StubServer, bucket: StubBucket, sentence: Sentence) -> None:
    for number in range(50):
        bucket.put(f"{number:02d}")
    expired = False

    def expire(operation: str, key: str, nth: int) -> Fault | None:
        nonlocal expired
        expired = expired or key == "20"
        return EXPIRED_TOKEN if expired else None

    stub.faults = [expire]
    for rules in ("O02", "E01", "O02,E01"):
        expired = False
        assert "the credentials have expired" in sentence("--only", rules)


def test_region_is_found_out_and_used(
    stub: StubServer, bucket: StubBucket, whole_run: WholeRun, tmp_path: Path
) -> None:
    bucket.put("k")
    bucket.region, bucket.wrong_region = "eu-central-1", "signature"
    assert whole_run(tmp_path).coverage["audited"] == 1
    assert {call.signed_region for call in stub.calls if call.key} == {"eu-central-1"}


def test_output_inside_the_audited_bucket_is_refused_before_anything_is_sent(
    stub: StubServer, sentence: Sentence
) -> None:
    line = sentence("--out", f"s3://{BUCKET}/reports", code=2)
    assert "is in the audited bucket" in line
    assert stub.requests == []


def test_failed_run_keeps_what_was_written(
    stub: StubServer, samples: StubBucket, sentence: Sentence, whole_run: WholeRun, tmp_path: Path
) -> None:
    def expire(operation: str, key: str, nth: int) -> Fault | None:
        return EXPIRED_TOKEN if key == "plain/0000125.txt" else None

    stub.faults = [expire]
    sentence("--concurrency", "4")
    state = checkpoint(tmp_path / "runs")
    assert state is not None
    kept = read_parts(tmp_path / "runs" / f"bucket={BUCKET}" / f"run={state['run']}", "objects")
    assert len(kept) == state["tally"]["coverage"]["listed"] > 0
    stub.faults = []
    resumed = whole_run(tmp_path / "runs", "--resume", state["run"])
    assert resumed.summary["complete"]
    assert resumed.coverage["listed"] == len(resumed.objects)
