"""`auditor verify` as a process: output, streams, exit codes and signals."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from auditor.cli.main import main
from tests.support.caught_signals import catches
from tests.support.paths import ROOT
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import Fault, latency
from tests.support.terminals import at_terminal, pieces
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


async def fill(stub: StubServer, folder: Path, *keys: str) -> None:
    async with make_bench(stub, folder) as bench:
        await bench.recorded(*(bench.put(key, key.encode()) for key in keys))


async def until_read(stub: StubServer, count: int) -> None:
    """The number of objects that were read."""
    async with asyncio.timeout(30):
        while stub.count("GetObject") < count:  # noqa: ASYNC110 - the server counts in a thread of its own
            await asyncio.sleep(0.02)


async def test_report_and_summary_go_to_different_streams(stub: StubServer, tmp_path: Path) -> None:
    await fill(stub, tmp_path, "a\nb", "flipped", "gone")
    stub.world.buckets[BUCKET].objects.versions("flipped")[0].body = b"flopped"
    stub.world.buckets[BUCKET].objects.remove("gone")
    with verify(stub, tmp_path, f"s3://{BUCKET}", "--combined", "-") as child:
        out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (3, "= a\\nb\n* flipped\n- gone\n")
    assert "1  MISMATCH" in err
    assert "1  MISSING" in err


async def test_table_names_the_damaged_and_gone(stub: StubServer, tmp_path: Path) -> None:
    await fill(stub, tmp_path, "a\nb", "z", *(f"gone-{number:02}" for number in range(11)))
    for key in ("a\nb", "z"):
        stub.world.buckets[BUCKET].objects.versions(key)[0].body = b"flopped"
    for number in range(11):
        stub.world.buckets[BUCKET].objects.remove(f"gone-{number:02}")
    with verify(stub, tmp_path, f"s3://{BUCKET}", "--combined", "lines.txt") as child:
        out, _ = child.communicate(timeout=60)
    assert child.returncode == 3
    named = ["* a\\nb", "* z", *(f"- gone-{number:02}" for number in range(8)), "and 3 more: see the report"]
    assert [line.strip() for line in out.splitlines()[-11:]] == named
    assert len((tmp_path / "lines.txt").read_text().splitlines()) == 13


async def test_json_summary_and_report_in_a_file(stub: StubServer, tmp_path: Path) -> None:
    await fill(stub, tmp_path, "key", "denied")
    stub.world.buckets[BUCKET].objects.versions("denied")[0].deny = {"get"}
    arguments = (f"s3://{BUCKET}", "--combined", "lines.txt", "--format", "json", "--out", "reports")
    with verify(stub, tmp_path, *arguments) as child:
        out, _ = child.communicate(timeout=60)
    assert child.returncode == 4
    summary = json.loads(out)
    assert summary["outcomes"] == {
        "match": 1,
        "mismatch": 0,
        "changed": 0,
        "missing": 0,
        "lost": 0,
        "deleted": 0,
        "retired": 0,
        "acknowledged": 0,
        "new": 0,
        "unreadable": 1,
        "ledger_fault": 0,
        "archived": 0,
        "in_flight": 0,
        "not_due": 0,
        "left_for_cost": 0,
    }
    assert (tmp_path / "lines.txt").read_text() == "! denied\n= key\n"
    folder = tmp_path / "reports" / f"bucket={BUCKET}" / f"verify={summary['verify']}"
    assert sorted(path.name for path in folder.iterdir()) == [
        "combined-00000-00000.jsonl.gz",
        "report.html",
        "summary.json",
    ]


async def test_table_says_that_nothing_was_compared_and_why(stub: StubServer, tmp_path: Path) -> None:
    await fill(stub, tmp_path, "a/key")
    stub.put(BUCKET, "b/key", b"data")
    for prefix, why in {
        "a/": None,
        "b/": "the ledger knows none of these objects (1 new)",
        "c/": "nothing is there: check the bucket and the prefix, or pass --allow-empty",
    }.items():
        with verify(stub, tmp_path, f"s3://{BUCKET}/{prefix}", "--grace", "0s") as child:
            out, _ = child.communicate(timeout=60)
        assert [line.split(";")[0] for line in out.splitlines() if line.startswith("HOLE")] == (
            [f"HOLE: nothing was compared: {why}"] if why else []
        )
        assert child.returncode == (4 if why else 0)


async def test_clean_bucket_is_exit_0(stub: StubServer, tmp_path: Path) -> None:
    await fill(stub, tmp_path, "key")
    with verify(stub, tmp_path, f"s3://{BUCKET}") as child:
        out, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    assert "1  match" in out


async def test_signal_finishes_what_is_in_flight_and_what_was_verified_stays_noted(
    stub: StubServer, tmp_path: Path
) -> None:
    keys = [f"k{number:02}" for number in range(40)]
    await fill(stub, tmp_path, *keys)

    def slow(operation: str, key: str, nth: int) -> Fault | None:
        return latency(0.2) if operation == "GetObject" else None

    stub.faults = [slow]
    with verify(stub, tmp_path, f"s3://{BUCKET}", "--concurrency", "2", "--format", "json") as child:
        await until_read(stub, 4)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    summary = json.loads(out)
    assert child.returncode == 4, err
    assert not summary["complete"]
    assert summary["resume"]["reason"] == "stopped by SIGINT"
    done = summary["outcomes"]["match"]
    assert 0 < done < len(keys)
    async with make_bench(stub, tmp_path) as bench:
        noted = [key for key in keys if await bench.noted(key)]
    assert noted == keys[:done]


async def test_second_signal_gives_up_and_keeps_what_was_noted(stub: StubServer, tmp_path: Path) -> None:
    await fill(stub, tmp_path, "fast", "slow")

    def slow(operation: str, key: str, nth: int) -> Fault | None:
        return latency(30) if operation == "GetObject" and key == "slow" else None

    stub.faults = [slow]
    with verify(stub, tmp_path, f"s3://{BUCKET}") as child:
        await until_read(stub, 2)
        assert child.stderr is not None
        child.send_signal(signal.SIGINT)
        assert "finishing work in flight" in child.stderr.readline()
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=30)
    assert (child.returncode, err) == (
        4,
        f"auditor: s3://{BUCKET}: stopped at once; the ledger, if it can be written, has the results so far\n",
    )
    async with make_bench(stub, tmp_path) as bench:
        assert [event.what for event in await bench.noted("fast")] == ["verified"]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux which signals a process catches")
@pytest.mark.parametrize("command", ["verify", "hash"])
def test_second_signal_while_the_ledger_is_opened_is_one_sentence(command: str, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "locked.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with subprocess.Popen(
            [sys.executable, "-m", "auditor", command, f"s3://{BUCKET}", "--ledger", "sqlite:locked.db"],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
        ) as child:
            assert child.stderr is not None
            while not catches(child.pid, signal.SIGTERM):
                time.sleep(0.02)
            child.send_signal(signal.SIGTERM)
            assert "finishing work in flight" in child.stderr.readline()
            child.send_signal(signal.SIGTERM)
            assert child.stderr.readline() == "auditor: stopped at once; finished work is kept\n"
            other.execute("ROLLBACK")
            _, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (4, "")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--ledger", "sqlite:x", "--max-age", "90"], "--max-age"),
        (["--ledger", "sqlite:x", "--percent", "0"], "--percent"),
        (["--ledger", "sqlite:x", "--algorithm", "crc99"], "--algorithm"),
        (["--ledger", "sqlite:x", "--fail-on", "high"], "--fail-on is 'high': give some of mismatch, missing, lost,"),
        (["--ledger", "sqlite:x", "--combined", "-", "--format", "json"], "--combined"),
        ([], "give sqlite:PATH or dynamodb:TABLE with it, set AUDITOR_LEDGER"),
    ],
)
def test_wrong_usage_is_one_sentence(
    arguments: list[str], named: str, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["verify", "s3://bucket", *arguments]) == 2
    _, err = capfd.readouterr()
    assert named in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("place", ["/dev/full", ".", "nowhere/lines", ""])
async def test_report_that_cannot_be_written_is_named(place: str, stub: StubServer, tmp_path: Path) -> None:
    await fill(stub, tmp_path, "key")
    with verify(stub, tmp_path, f"s3://{BUCKET}", "--combined", place) as child:
        _, err = child.communicate(timeout=60)
    assert child.returncode == 1
    assert f"auditor: --combined {place!r} cannot be written (" in err.splitlines()[-1]


async def test_ledger_is_not_written_over_by_the_report(stub: StubServer, tmp_path: Path) -> None:
    await fill(stub, tmp_path, "key")
    with verify(stub, tmp_path, f"s3://{BUCKET}", "--combined", "./digests.db") as child:
        out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (2, "")
    assert err == "auditor: --combined ./digests.db is the ledger itself: give another file\n"
    async with make_bench(stub, tmp_path) as bench:
        assert await bench.ledger.subject(BUCKET, "key") is not None


@pytest.mark.parametrize("command", [("verify",), ("digests", "export"), ("ledger",)])
def test_ledger_that_is_not_there_is_refused_and_not_made(
    command: tuple[str, ...], capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*command, "s3://bucket/key", "--ledger", "sqlite:mistyped.db"]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "--ledger 'sqlite:mistyped.db' does not exist" in err
    assert not list(tmp_path.iterdir())


async def test_first_verification_that_records_makes_the_ledger(stub: StubServer, tmp_path: Path) -> None:
    stub.put(BUCKET, "key", b"data")
    with verify(stub, tmp_path, f"s3://{BUCKET}", "--record") as child:
        out, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    assert "recorded as new evidence: 1 object" in out


async def test_digest_of_the_bytes_that_were_found_is_told(stub: StubServer, tmp_path: Path) -> None:
    await fill(stub, tmp_path, "key")
    stub.world.buckets[BUCKET].objects.versions("key")[0].body = b"kex"
    with verify(stub, tmp_path, f"s3://{BUCKET}") as child:
        child.communicate(timeout=60)
    async with make_bench(stub, tmp_path) as bench:
        (event,) = await bench.noted("key")
    assert event.detail["found"] == hashlib.sha256(b"kex").hexdigest()


async def test_progress_moves_on_a_terminal_while_one_object_is_read(stub: StubServer, tmp_path: Path) -> None:
    await fill(stub, tmp_path, "a", "bb", "gone")
    stub.world.buckets[BUCKET].objects.remove("gone")
    stub.world.buckets[BUCKET].objects.versions("a")[0].body = b"z"
    held, flags = threading.Event(), ("--ledger", "sqlite:digests.db", "--endpoint-url", stub.url, "--grace", "0s")

    def hold(operation: str, key: str, nth: int) -> None:
        if (operation, key) == ("GetObject", "bb"):
            held.wait(30)

    stub.faults = [hold]
    shown = b""
    started = at_terminal(
        tmp_path, "verify", f"s3://{BUCKET}", *flags, columns=120, environment={"TERM": "xterm"}, shown="stderr"
    )
    with started as (child, terminal):
        for piece in pieces(terminal):
            shown += piece
            if b"1 mismatch" in shown:
                held.set()
        out, _ = child.communicate()
    lines = shown.decode().split("\r")
    assert child.returncode == 3
    assert lines[-1] == "\x1b[K"
    assert re.fullmatch(
        rf"s3://{BUCKET}: 1 object, \d/s, 2 listed, 1 bytes read at \d bytes/s, 1 mismatch\x1b\[K", lines[-2]
    )
    assert out.startswith(b"s3://")
    assert b"\x1b" not in out
