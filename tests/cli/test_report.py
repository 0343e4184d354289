"""`auditor report` makes a run's page again."""

from __future__ import annotations

import gzip
import json
import re
import time
from pathlib import Path

import pytest

from auditor.cli.main import main
from auditor.text import counted
from tests.cli.test_signals import start
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import BLACK_HOLE, Fault, Kind


def test_run_killed_before_its_first_part_has_a_page_that_says_so(
    stub: StubServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(9):
        stub.put(BUCKET, f"{number}", b"x")
    whole = ("--endpoint-url", stub.url, "--out", str(tmp_path / "whole"), "--format", "json", "--fail-on", "never")
    assert main(["audit", f"s3://{BUCKET}", *whole]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"B01", "B02"} <= found["rules"].keys()
    stub.forget()
    stub.faults = [lambda operation, key, nth: BLACK_HOLE if key >= "5" else None]
    child = start(tmp_path, "audit", f"s3://{BUCKET}", "--endpoint-url", stub.url, "--out", "runs")
    with child:
        while not any(call.key >= "5" for call in stub.calls) and child.poll() is None:
            time.sleep(0.02)
        child.kill()
    (folder,) = tmp_path.glob(f"runs/bucket={BUCKET}/run=*")
    page = tmp_path / "page.html"
    assert main(["report", str(folder), "--out", str(page)]) == 4
    assert f"{folder} is a run that has not ended" in capsys.readouterr().err
    text = page.read_text()
    assert "NOT COMPLETE: 0 objects listed so far" in text
    assert "✓" not in text
    assert "found nothing" not in text
    assert "every requested fact about objects was read" not in text
    assert "so far, and the run is not complete" in text
    assert not (folder / "report.html").exists()
    assert main(["diff", found["out"], str(folder)]) == 0
    told = capsys.readouterr()
    assert f"run {folder.name.removeprefix('run=')} is NOT COMPLETE" in told.err
    assert "unread" in told.out
    stub.faults.clear()
    again = ("--endpoint-url", stub.url, "--out", str(tmp_path / "runs"), "--resume", str(folder), "--fail-on", "never")
    assert main(["audit", f"s3://{BUCKET}", *again]) == 0
    run = folder.name.removeprefix("run=")
    said = f"run {run} ended before it saved a part: it starts again from its first key"
    assert [record.getMessage() for record in caplog.records] == [said]
    assert main(["audit", f"s3://{BUCKET}", *again]) == 0
    assert len(caplog.records) == 1
    assert "resolved" not in told.out.lower()


@pytest.fixture
def killed(stub: StubServer, tmp_path: Path) -> Path:
    """The folder of a run that was killed after its first part, in which an object is exposed."""
    for key in ("a", "b", "c", "d"):
        stub.put(BUCKET, key, b"x", acl="public-read" if key == "a" else "private")
    out = ("--endpoint-url", stub.url, "--out", str(tmp_path / "runs"), "--quiet")
    stub.faults = [lambda operation, key, nth: Fault(Kind.ERROR, 503, "SlowDown") if key == "c" else None]
    assert main(["audit", f"s3://{BUCKET}", "--max-calls", "18", *out]) == 4
    (folder,) = tmp_path.glob(f"runs/bucket={BUCKET}/run=*")
    assert (folder / "objects" / "part-00000-00000.jsonl.gz").exists()
    for name in ("summary.json", "report.html", "rollups.json", "seal.json"):
        (folder / name).unlink()
    return folder


def test_killed_run_has_a_page_of_its_parts(killed: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["report", str(killed), "--out", str(page)]) == 4
    text = page.read_text()
    listed = len(gzip.decompress((killed / "objects" / "part-00000-00000.jsonl.gz").read_bytes()).splitlines())
    banner = f"NOT COMPLETE: {counted(listed, 'object')} listed so far"
    assert re.findall(f'<p class="banner" role="note">({banner}).</p>', text) == [banner]
    assert f"<title>{banner}, 1 exposed in s3://{BUCKET}/</title>" in text
    (headline,) = re.findall("(<h1.*?)</h1>", text)
    assert "Not complete. Strangers can get at" in headline
    assert "good" not in headline
    assert "O02" in text  # the groups are there


def test_killed_run_with_a_damaged_file_is_refused(killed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    part, other = killed / "objects" / "part-00000-00000.jsonl.gz", killed / "findings" / "part-00000-00000.jsonl.gz"
    first = gzip.decompress(part.read_bytes()).splitlines(keepends=True)[0]
    for file, data, words in (
        (part, part.read_bytes()[:-9], "is damaged"),
        (part, gzip.compress(first), "is damaged"),
        (part, None, "is damaged"),
        (other, None, "is damaged"),
        (killed / "run.json", None, "run.json is gone"),
    ):
        whole = file.read_bytes()
        file.unlink() if data is None else file.write_bytes(data)
        assert main(["report", str(killed), "--out", "-"]) == 1
        said = capsys.readouterr()
        assert (said.out, words in said.err) == ("", True), said.err
        file.write_bytes(whole)
