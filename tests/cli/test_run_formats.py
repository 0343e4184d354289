"""`auditor audit` and `auditor judge` print a run as a comment for a pull request, one target after the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.cli.main import main
from auditor.reports.formats import FORMATS, PRINTED
from auditor.runs.folder_place import open_run
from tests.support.servers.stub import StubServer


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def printed(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(arguments)
    return code, capfd.readouterr().out


def test_a_comment_is_that_of_export(stub: StubServer, capfd: pytest.CaptureFixture[str]) -> None:
    stub.put("audited", "<b>*.txt", b"x", acl="public-read")
    code, out = printed(capfd, "audit", "s3://audited", "--endpoint-url", stub.url, "--format", "markdown")
    (folder,) = Path("auditor-runs/bucket=audited").glob("run=*")
    with open_run(folder) as run:
        assert run.summary is not None
        assert out == "".join(FORMATS["markdown"](run.summary, run))
    assert code == 3
    assert "**Strangers can get at 1 object.**" in out
    judged = printed(capfd, "judge", str(folder), "--format", "markdown")
    assert judged[0] == 3
    assert "**Strangers can get at 1 object.**" in judged[1]


def test_the_comment_of_a_target_that_failed_says_so(stub: StubServer, capfd: pytest.CaptureFixture[str]) -> None:
    stub.put("audited", "a", b"x")
    targets = ["s3://audited", "s3://missing-one"]
    code, out = printed(capfd, "audit", *targets, "--endpoint-url", stub.url, "--format", "markdown")
    assert code == 4
    assert out.count("## S3 audit of ") == 2
    comment = next(part for part in out.split("## S3 audit of ") if part.startswith("s3&#58;//missing-one"))
    assert "**It failed, so nothing is known of it.**" in comment


def test_the_table_of_a_run_is_that_of_its_audit(stub: StubServer, capfd: pytest.CaptureFixture[str]) -> None:
    stub.put("audited", "a", b"x", acl="public-read")
    code, table = printed(capfd, "audit", "s3://audited", "--endpoint-url", stub.url)
    (folder,) = Path("auditor-runs/bucket=audited").glob("run=*")
    assert printed(capfd, "export", str(folder), "--format", "table") == (0, table)
    assert code == 3
    Path(folder, "rollups.json").unlink()
    assert printed(capfd, "export", str(folder), "--format", "table") == (1, "")


def test_a_format_of_lines_is_for_export_alone(capfd: pytest.CaptureFixture[str]) -> None:
    assert PRINTED == ("table", "json", "markdown")
    with pytest.raises(SystemExit) as stopped:
        main(("audit", "s3://audited", "--format", "csv"))
    assert stopped.value.code == 2
    assert "markdown" in capfd.readouterr().err
