"""`auditor verify` as a process: output, streams, exit codes and signals."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from auditor.ledger.base import Event
from tests.cli.conftest import Run
from tests.support.paths import ROOT
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import Fault, latency
from tests.support.verification import make_bench


def verify(stub: StubServer, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "auditor", "verify", *arguments],
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": str(ROOT), "AUDITOR_ENDPOINT_URL": stub.url, "AUDITOR_LEDGER": "sqlite:digests.db"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def bench(run: Run, stub: StubServer, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `auditor verify` in this process."""
    monkeypatch.setenv("AUDITOR_ENDPOINT_URL", stub.url)
    monkeypatch.setenv("AUDITOR_LEDGER", "sqlite:digests.db")

    def call(*arguments: str) -> tuple[int, str, str]:
        target = () if arguments and arguments[0].startswith("s3://") else (f"s3://{BUCKET}",)
        return run("verify", *target, *arguments)

    return call


def fill(stub: StubServer, folder: Path, *keys: str) -> None:
    async def record() -> None:
        async with make_bench(stub, folder) as bench:
            await bench.recorded(*(bench.put(key, key.encode()) for key in keys))

    asyncio.run(record())


async def noted(stub: StubServer, folder: Path, key: str) -> list[Event]:
    async with make_bench(stub, folder) as bench:
        return await bench.noted(key)


def until_read(stub: StubServer, count: int) -> None:
    """Wait until so many objects were read."""
    until = time.monotonic() + 30
    while stub.count("GetObject") < count and time.monotonic() < until:
        time.sleep(0.02)


def test_table_and_combined_report_name_the_damaged_and_gone(bench: Run, stub: StubServer, tmp_path: Path) -> None:
    fill(stub, tmp_path, "a\nb", "z", *(f"gone-{number:02}" for number in range(11)))
    for key, body in (("a\nb", b"a b"), ("z", b"y")):
        stub.world.buckets[BUCKET].objects.versions(key)[0].body = body
    for number in range(11):
        stub.world.buckets[BUCKET].objects.remove(f"gone-{number:02}")
    code, out, _ = bench("--combined", "lines.txt")
    named = ["* a\\nb", "* z", *(f"- gone-{number:02}" for number in range(8)), "and 3 more: see the report"]
    assert code == 3
    assert [line.strip() for line in out.splitlines()[-11:]] == named
    code, out, err = bench("--combined", "-")  # the summary goes to the other stream
    assert (code, out) == (3, Path("lines.txt").read_text())
    assert out.splitlines() == ["* a\\nb", *(f"- gone-{number:02}" for number in range(11)), "* z"]
    assert "2  MISMATCH" in err
    assert "11  MISSING" in err
    (event, *_) = asyncio.run(noted(stub, tmp_path, "z"))
    assert event.detail["found"] == hashlib.sha256(b"y").hexdigest()


def test_json_summary_and_files_of_a_verification(bench: Run, stub: StubServer, tmp_path: Path) -> None:
    fill(stub, tmp_path, "key", "denied")
    code, out, _ = bench()
    assert (code, "2  match" in out) == (0, True)
    stub.world.buckets[BUCKET].objects.versions("denied")[0].deny = {"get"}
    code, out, _ = bench("--combined", "lines.txt", "--format", "json", "--out", "reports")
    summary = json.loads(out)
    assert (code, Path("lines.txt").read_text()) == (4, "! denied\n= key\n")
    assert {name: count for name, count in summary["outcomes"].items() if count} == {"match": 1, "unreadable": 1}
    folder = Path("reports") / f"bucket={BUCKET}" / f"verify={summary['verify']}"
    names = ["combined-00000-00000.jsonl.gz", "report.html", "summary.json"]
    assert sorted(path.name for path in folder.iterdir()) == names


def test_signal_finishes_what_is_in_flight_and_what_was_verified_stays_noted(stub: StubServer, tmp_path: Path) -> None:
    keys = [f"k{number:02}" for number in range(20)]
    fill(stub, tmp_path, *keys)

    def slow(operation: str, key: str, nth: int) -> Fault | None:
        return latency(0.2) if operation == "GetObject" else None

    stub.faults = [slow]
    with verify(stub, tmp_path, f"s3://{BUCKET}", "--concurrency", "2", "--format", "json") as child:
        until_read(stub, 4)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    summary = json.loads(out)
    assert child.returncode == 4, err
    assert not summary["complete"]
    assert summary["resume"]["reason"] == "stopped by SIGINT"
    done = summary["outcomes"]["match"]
    assert 0 < done < len(keys)

    async def kept() -> list[str]:
        async with make_bench(stub, tmp_path) as bench:
            return [key for key in keys if await bench.noted(key)]

    assert asyncio.run(kept()) == keys[:done]


def test_second_signal_gives_up_and_keeps_what_was_noted(stub: StubServer, tmp_path: Path) -> None:
    fill(stub, tmp_path, "fast", "slow")

    def slow(operation: str, key: str, nth: int) -> Fault | None:
        return latency(30) if operation == "GetObject" and key == "slow" else None

    stub.faults = [slow]
    with verify(stub, tmp_path, f"s3://{BUCKET}") as child:
        until_read(stub, 2)
        assert child.stderr is not None
        child.send_signal(signal.SIGINT)
        assert "finishing work in flight" in child.stderr.readline()
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=30)
    assert (child.returncode, err) == (
        4,
        f"auditor: s3://{BUCKET}: stopped at once; the ledger, if it can be written, has the results so far\n",
    )
    assert [event.what for event in asyncio.run(noted(stub, tmp_path, "fast"))] == ["verified"]


def test_report_that_cannot_be_written_is_named(bench: Run, stub: StubServer, tmp_path: Path) -> None:
    fill(stub, tmp_path, "key")
    for place in ("/dev/full", ".", "nowhere/lines", ""):
        code, _, err = bench("--combined", place)
        assert (code, f"auditor: --combined {place!r} cannot be written (" in err.splitlines()[-1]) == (1, True), err
    code, out, err = bench("--combined", "./digests.db")
    assert (code, out) == (2, "")
    assert err == "auditor: --combined ./digests.db is the ledger itself: give another file\n"
    assert bench()[0] == 0
