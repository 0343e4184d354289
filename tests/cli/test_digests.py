"""`auditor digests` and `auditor ledger`, on a SQLite ledger: output, streams and exit codes."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace

from auditor.ledger import open_ledger
from auditor.ledger.base import Entry, Event, Notice
from tests.cli.conftest import Run
from tests.support.caught_signals import catches
from tests.support.odd_keys import ODD_KEYS
from tests.support.paths import ROOT

LEDGER = ("--ledger", "sqlite:digests.db")
THEN = "2026-01-02T03:04:05Z"


def digest(content: str) -> str:
    return sha256(content.encode()).hexdigest()


def entry(key: str, content: str, version_id: str | None = None) -> Entry:
    return Entry(
        bucket="bucket",
        key=key,
        version_id=version_id,
        etag=f"etag of {content[:20]}",
        size=len(content.encode()),
        digests={"sha256": digest(content)},
        hashed_at=THEN,
        bytes_read=len(content.encode()),
    )


def record(*entries: Entry, notices: tuple[Notice, ...] = (), events: tuple[Event, ...] = ()) -> None:
    async def write() -> None:
        async with open_ledger("sqlite:digests.db") as ledger:
            for one in entries:
                await ledger.record(one)
            for notice in notices:
                await ledger.arrived("bucket", notice)
            await ledger.note("bucket", events)

    asyncio.run(write())


def test_export_and_import_into_another_ledger_and_export_is_checked_by_coreutils(run: Run, tmp_path: Path) -> None:
    record(*(entry(key, key) for key in ODD_KEYS.values()), entry("plain", "plain"))
    code, out, err = run("digests", "export", "s3://bucket", *LEDGER)
    assert (code, out.count("\n"), err) == (0, len(ODD_KEYS) + 1, "")
    (tmp_path / "sums").write_bytes(out.encode())
    command = ["digests", "import", "sums", "s3://bucket", "--ledger", "sqlite:other.db"]
    code, out, err = run(*command, "--format", "json")
    assert (code, err) == (0, "")
    number = len(ODD_KEYS) + 1
    found = json.loads(out)
    assert (found["target"], found["complete"]) == ({"bucket": "bucket", "prefix": ""}, True)
    assert (found["digests"], found["new"], found["known"]) == (number, number, 0)
    code, out, _ = run(*command)
    again = f"{number} digests of 1 file, 0 new to the ledger, {number} known before, complete: yes"
    assert out == f"s3://bucket: {again}\n"

    async def expected() -> dict[str, str]:
        async with open_ledger("sqlite:other.db") as ledger:
            return {s.key: one.digest async for s in ledger.subjects("bucket") for one in s.expectations}

    assert asyncio.run(expected()) == {key: digest(key) for key in [*ODD_KEYS.values(), "plain"]}


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum is not installed")
def test_relative_export_of_a_folder_is_checked_where_the_folder_was_restored(run: Run, tmp_path: Path) -> None:
    record(entry("folder/a b", "1"), entry("folder/-", "2"), entry("other", "3"))
    code, out, _ = run("digests", "export", "s3://bucket/folder/", *LEDGER, "--relative", "--out", "restored.sums")
    assert (code, out) == (0, "")
    (tmp_path / "restored").mkdir()
    for name, content in [("a b", "1"), ("-", "2")]:
        (tmp_path / "restored" / name).write_text(content)
    command, folder = ["sha256sum", "-c", "../restored.sums"], tmp_path / "restored"
    checked = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, b"./-: OK\na b: OK\n")


def test_failed_export_leaves_the_file_as_it_was(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sums").write_text("before")
    (tmp_path / "digests.db").write_text("no database")
    code, _, err = run("digests", "export", "s3://bucket", *LEDGER, "--out", "sums")
    assert code == 1, err
    assert (tmp_path / "sums").read_text() == "before"
    assert not list(tmp_path.glob("*.tmp"))
    (tmp_path / "digests.db").unlink()
    record(entry("key", "content"))
    (tmp_path / "link").symlink_to("digests.db")
    code, _, err = run("digests", "export", "s3://bucket", *LEDGER, "--out", "link")
    assert (code, err) == (2, "auditor: --out link is the ledger itself: give another file\n")
    assert run("digests", "export", "s3://bucket", *LEDGER)[1] == f"{digest('content')}  key\n"


def test_one_keys_evidence_and_history(run: Run, tmp_path: Path) -> None:
    key = "odd\n\u202ekey"
    changed = Event(key=key, at="2026-03-01T00:00:00Z", what="changed", etag="\x1b[2J", detail={"found": "a\nb"})
    record(entry(key, "old", "v1"), entry(key, "newer", "v2"), events=(changed,))
    (tmp_path / "sums.txt").write_text(f"\\{digest('theirs')}  odd\\n\u202ekey\n", encoding="utf-8")
    assert run("digests", "import", "sums.txt", "s3://bucket", *LEDGER)[0] == 0
    code, out, err = run("ledger", f"s3://bucket/{key}", *LEDGER)
    assert (code, err) == (0, "")
    assert all(line.isprintable() for line in out.splitlines())
    lines = out.splitlines()
    assert lines[0] == "s3://bucket/odd\\n\\u202ekey"
    assert lines[1:7] == [
        f"version v1, ETag etag of old, 3 bytes, first seen {THEN}",
        f"  sha256  {digest('old')}",
        f"          computed from 3 bytes read, recorded {THEN}, not verified since",
        f"version v2, ETag etag of newer, 5 bytes, first seen {THEN}",
        f"  sha256  {digest('newer')}",
        f"          computed from 5 bytes read, recorded {THEN}, not verified since",
    ]
    assert lines[7].startswith("expected, by sums.txt, imported 20")
    assert lines[8] == f"  sha256  {digest('theirs')}"
    assert lines[9] == "history, oldest first"
    assert [line.split()[1] for line in lines[10:]] == ["recorded", "recorded", "changed", "imported"]
    assert r"etag=\x1b[2J found=a\nb" in lines[12]


def test_history_of_a_key_is_shown_as_it_is_even_if_a_line_was_damaged(run: Run) -> None:
    record(entry("key", "content"), notices=(Notice(key="gone", sequencer="0A", deleted=True, at=THEN),))
    with closing(sqlite3.connect("digests.db", isolation_level=None)) as database:
        database.execute(
            "INSERT INTO history (bucket, key, line, at, what, detail, seal) VALUES ('bucket', CAST('key' AS BLOB),"
            " x'00', ?, 'verified', '{scratched', '')",
            (THEN,),
        )
    code, out, err = run("ledger", "s3://bucket/key", *LEDGER)
    assert (code, err, "damaged={scratched" in out.splitlines()[-1]) == (0, "", True)
    code, out, _ = run("ledger", "s3://bucket/gone", *LEDGER)  # a key that only a notification named
    assert (code, f"deleted, a notification said at {THEN}" in out) == (0, True)
    assert run("ledger", "s3://bucket/K\x07", *LEDGER) == (
        1,
        "",
        "auditor: the ledger knows nothing of s3://bucket/K\\x07: give the whole key, exactly as it is\n",
    )


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux which signals a process catches")
@pytest.mark.parametrize("signals", [1, 2])
def test_signal_ends_an_import_after_its_batch_and_a_second_one_at_once(run: Run, tmp_path: Path, signals: int) -> None:
    record(entry("k", "x"))
    (tmp_path / "sums").write_text("".join(f"{digest('a')}  {number}\n" for number in range(501)))
    command = [sys.executable, "-m", "auditor", "digests", "import", "sums", "s3://bucket", *LEDGER]
    lock = sqlite3.connect(tmp_path / "digests.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")  # holds the first batch up
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe, text=True) as child:
        assert child.stderr is not None
        while child.poll() is None and not catches(child.pid, signal.SIGTERM):
            time.sleep(0.02)
        time.sleep(0.5)  # it waits for the lock
        child.send_signal(signal.SIGTERM)
        said = child.stderr.readline()
        if signals == 2:
            child.send_signal(signal.SIGTERM)
        time.sleep(0.5)  # it has taken the signal before the lock is let go
        lock.execute("ROLLBACK")
        printed, told = child.communicate(timeout=30)
    lock.close()
    assert said == "auditor: SIGTERM: finishing work in flight; repeat the signal to stop at once\n"
    counted = "501 digests of 1 file, 500 new to the ledger, 0 known before, complete: NO"
    assert (child.returncode, printed) == (4, f"s3://bucket: {counted}\n" if signals == 1 else "")
    ended = "auditor: stopped at once" if signals == 2 else "auditor: stopped: the ledger has what is counted"
    assert told == f"{ended}; import again for the rest\n"


WHO = ("--by", "Ada Lovelace", "--reason", "expired by the lifecycle rule")


def test_retired_keys_are_said_in_the_ledger(run: Run) -> None:
    record(entry("a", "old", "v1"), entry("b", "old"))
    code, out, err = run("digests", "retire", "s3://bucket/a", "s3://bucket/b", *WHO, *LEDGER)
    assert (code, out, err) == (0, "retired: s3://bucket/a\nretired: s3://bucket/b\n", "")
    _, out, _ = run("ledger", "s3://bucket/a", *LEDGER)
    assert "retired at 20" in out
    assert "by=Ada Lovelace reason=expired by the lifecycle rule" in out.splitlines()[-1]
    code, out, _ = run("digests", "retire", "s3://bucket/a", "--version", "v1", *WHO, *LEDGER, "--format", "json")
    (event,) = json.loads(out)["events"]
    assert (code, event["bucket"], event["key"], event["version_id"]) == (0, "bucket", "a", "v1")
    assert event["detail"] == {"by": WHO[1], "reason": WHO[3]}


def test_acknowledged_findings_are_those_that_stand(run: Run) -> None:
    mismatch = Event(key="a", at=THEN, what="mismatch", etag="e", size=1, detail={"found": "00"})
    missing = Event(key="b", at=THEN, what="missing", version_id="v1", etag="e")
    record(entry("a", "old"), events=(mismatch, missing))
    code, out, _ = run("digests", "acknowledge", "s3://bucket/a", "s3://bucket/b", *WHO, *LEDGER)
    assert (code, out) == (0, "acknowledged mismatch: s3://bucket/a\nacknowledged missing: s3://bucket/b, version v1\n")


def test_word_that_cannot_be_kept_writes_nothing(run: Run) -> None:
    record(entry("k", "old", "v1"))
    key = "s3://bucket/k"
    for arguments, expected, sentence in (
        (("retire", key, "s3://bucket/unknown", *WHO), 1, "knows nothing of s3://bucket/unknown"),
        (("retire", key, "--version", "v9", *WHO), 1, f"no version v9 of {key}: its versions are v1"),
        (("retire", "s3://bucket", *WHO), 2, "names no key"),
        (("retire", key, "--by", "Ada"), 2, "--reason"),
        (("retire", key, "--by", " ", "--reason", "x"), 2, "--by must have 1 to 1,000 characters"),
        (("acknowledge", key, "--by", "x", "--reason", "x" * 1001), 2, "--reason must have 1 to 1,000"),
        (("acknowledge", key, *WHO), 1, "does not end with a finding"),
    ):
        code, out, err = run("digests", *arguments, *LEDGER)
        assert (code, out, sentence in err) == (expected, "", True), err
    _, out, _ = run("ledger", key, *LEDGER, "--format", "json")
    assert [event["what"] for event in json.loads(out)["history"]] == ["recorded"]


def test_strict_export_fails_where_newer_content_was_told(run: Run) -> None:
    newer = Notice(key="stale", sequencer="0A", deleted=False, at=THEN, etag="newer", size=1)
    gone = Notice(key="gone", sequencer="0A", deleted=True, at="2026-01-02T03:05:05Z")
    retired = Event(key="retired", at="2026-02-01T00:00:00Z", what="retired")
    removed = Event(key="back", at="2026-01-02T03:05:05Z", what="deleted", version_id="v2")
    versions = (entry("back", "old", "v1"), entry("back", "new", "v2"))
    keys = [entry(key, "old") for key in ("gone", "retired", "stale")]
    record(*keys, *versions, notices=(gone,), events=(retired, removed))
    forms = {form: ("digests", "export", "s3://bucket", "--manifest", form, *LEDGER) for form in ("sha256sum", "csv")}
    for form, export in forms.items():
        code, manifest, err = run(*export, "--strict")
        assert (code, "retired" in err, "gone" in err) == (0, True, False)
        assert digest("old") in manifest
        assert (digest("new") in manifest) is (form == "csv")
    record(notices=(newer,))
    for form, export in forms.items():
        code, _, err = run(*export, "--strict", "--out", "sums")
        assert (code, Path("sums").exists(), "1 key " in err) == (4, False, True)
        assert "reported newer content, which has no digest" in err
        code, manifest, _ = run(*export)
        assert (code, "stale" in manifest) == (0, form == "csv")


def test_history_of_all_keys_is_written_as_csv(run: Run, tmp_path: Path) -> None:
    formula, odd = "=1+1", 'a,"b\r\n'
    checked = Event(key=formula, at="2027-01-01T00:00:00Z", what="verified", detail={"algorithm": "sha256"})
    s3s = replace(entry(odd, "b"), source="s3", bytes_read=0)
    gone = Notice(key="gone", sequencer="0A", deleted=True, at=THEN)
    record(entry(formula, "a"), s3s, entry("other", "c"), notices=(gone,), events=(checked,))
    code, out, err = run("digests", "history", "s3://bucket", *LEDGER)
    assert (code, err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out, newline="")))
    assert [(row["key"], row["event"], row["premis_event_type"], row["seal"]) for row in rows] == [
        (f"'{formula}", "recorded", "message digest calculation", "sound"),
        (f"'{formula}", "verified", "fixity check", "sound"),
        (odd, "recorded", "", "sound"),
        ("gone", "deleted", "deletion", "sound"),
        ("other", "recorded", "message digest calculation", "sound"),
    ]
    assert (rows[0]["algorithm"], rows[0]["digest"], rows[0]["size"]) == ("sha256", digest("a"), "1")
    assert json.loads(rows[2]["detail"])["source"] == "s3"
    assert run("digests", "history", "s3://bucket", *LEDGER, "--out", "history.csv")[:2] == (0, "")
    assert (tmp_path / "history.csv").read_bytes().decode() == out


def test_history_below_a_prefix_is_written_as_json_lines(run: Run) -> None:
    key = "folder/\u202e\n"
    record(entry(key, "a"), entry("other", "c"))
    with closing(sqlite3.connect("digests.db")) as connection, connection:
        connection.execute("DROP TRIGGER history_is_never_changed")
        connection.execute("UPDATE history SET at = '2020' WHERE key = ?", (key.encode(),))
    code, out, err = run("digests", "history", "s3://bucket/folder/", *LEDGER, "--format", "json-lines")
    assert (code, err) == (0, "")
    (line,) = map(json.loads, out.splitlines())
    assert (line["key"], line["at"], line["seal"], line["version_id"]) == (key, "2020", "damaged", None)
    assert line["detail"]["digest"] == line["digest"] == digest("a")
    said = "auditor: the ledger has no history of s3://bucket/b: check the bucket and the prefix\n"
    assert run("digests", "history", "s3://bucket/b", *LEDGER, "--format", "json-lines") == (0, "", said)
