"""`auditor audit` of several targets writes an index page, and `auditor report OUT` makes it again from the folders."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from auditor.cli.main import main
from tests.support.servers.stub import StubServer
from tests.support.servers.world import Odd

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stub: StubServer) -> Run:
    """Run one command in an empty directory: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    for name in ("first", "second"):
        stub.world.add(name)
    stub.put("first", "a", b"x", acl="public-read")
    stub.put("second", "in/b", b"x")

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main([*arguments, "--endpoint-url", stub.url])
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return call


def test_index_names_each_target_and_leads_to_its_page(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("audit", "s3://first", "s3://second/in/", "s3://gone", "--only", "O02")
    assert code == 4
    index = tmp_path / "auditor-runs" / "index.html"
    assert f"reports: {Path('auditor-runs') / 'index.html'}\n" in out
    assert stat.S_IMODE(index.stat().st_mode) == 0o600
    page = index.read_text()
    assert "Not complete. Strangers can get at <em>1 object</em>" in page
    for target in ("s3://first", "s3://second/in/", "s3://gone"):
        assert f">{target}</code>" in page
    assert "there is no bucket named &#39;gone&#39;" in page
    links = re.findall(r'href="(bucket=[^"]+)"', page)
    assert len(links) == 2
    assert all((index.parent / link).is_file() for link in links)


def test_prefix_under_which_nothing_is_listed_is_not_closed(run: Run, tmp_path: Path) -> None:
    """It may have a mistake. The table and the alert doubt it, too."""
    run("audit", "s3://second/im/", "s3://second/in/", "--only", "O02")
    page = (tmp_path / "auditor-runs" / "index.html").read_text()
    rows = {
        name: row
        for row in (part.partition("</tr")[0] for part in page.split("<tr")[1:])
        for name in ("im/", "in/")
        if f">s3://second/{name}</code>" in row
    }
    assert ("closed" in rows["im/"], "nothing listed" in rows["im/"]) == (False, True)
    assert "closed" in rows["in/"]


def test_single_target_has_no_index(run: Run, tmp_path: Path) -> None:
    assert run("audit", "s3://first", "--only", "O02")[0] == 3
    assert not (tmp_path / "auditor-runs" / "index.html").exists()


def test_index_is_made_again_from_the_folders(run: Run, tmp_path: Path) -> None:
    for target in ("s3://first", "s3://second/in/", "s3://second"):
        run("audit", target, "--only", "O02", "--out", "runs")
    code, out, err = run("report", "runs")
    index = tmp_path / "runs" / "index.html"
    assert (code, out, err) == (0, f"{Path('runs') / 'index.html'}\n", "")
    page = index.read_text()
    assert re.findall(r'<code dir="ltr">(s3://[^<]+)</code></a>', page) == [
        "s3://first",
        "s3://second",
        "s3://second/in/",
    ]
    assert "s3://second/in/ lies in s3://second" in page
    code, out, _ = run("report", "runs", "--out", "-")
    assert (code, out) == (0, page)


def test_run_that_is_gone_or_damaged_is_a_hole_of_the_index(run: Run, tmp_path: Path) -> None:
    run("audit", "s3://first", "s3://second", "--only", "O02", "--out", "runs")
    (summary,) = (tmp_path / "runs").glob("bucket=second/run=*/summary.json")
    summary.write_text("{")
    assert run("report", "runs")[0] == 0
    page = (tmp_path / "runs" / "index.html").read_text()
    assert "summary.json is damaged" in page
    assert "1 not audited" in page
    summary.unlink()
    (tmp_path / "runs" / "bucket=first" / "latest.json").write_text("[]")
    assert run("report", "runs")[0] == 0
    page = (tmp_path / "runs" / "index.html").read_text()
    assert "latest.json is damaged" in page
    assert "is not there any more" in page
    assert "No target was audited." in page


def test_place_without_a_run_is_one_sentence(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    code, out, err = run("report", "empty")
    assert (code, out) == (2, "")
    assert "there is no complete run at 'empty'" in err


def test_index_that_cannot_be_written_hides_no_result(run: Run, tmp_path: Path) -> None:
    (tmp_path / "runs" / "index.html").mkdir(parents=True)
    code, out, err = run("audit", "s3://first", "s3://second", "--only", "O02", "--out", "runs", "--fail-on", "never")
    assert code == 1
    assert "2 targets: 2 passed" in out
    assert "the index page is not written: " in err


def test_bucket_without_a_complete_run_is_a_hole_of_the_index(run: Run, stub: StubServer, tmp_path: Path) -> None:
    """The page that the audit itself wrote names it, and the page that is made again has to do so, too."""
    stub.world.buckets["second"].odd["ListObjectsV2"] = Odd.DENIED
    assert run("audit", "s3://first", "s3://second", "--only", "O02", "--out", "runs")[0] == 4
    assert run("report", "runs")[0] == 0
    page = (tmp_path / "runs" / "index.html").read_text()
    assert "no run of it is complete" in page
    assert "1 not audited" in page


def test_latest_json_of_another_form_is_a_hole_of_the_index(run: Run, tmp_path: Path) -> None:
    run("audit", "s3://first", "s3://second", "--only", "O02", "--out", "runs")
    (tmp_path / "runs" / "bucket=second" / "latest.json").write_text('{"format": 1, "runs": [1]}')
    assert run("report", "runs")[0] == 0
    assert "latest.json is damaged" in (tmp_path / "runs" / "index.html").read_text()
