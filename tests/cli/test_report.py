"""`auditor report` makes a run's page again."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.cli.main import main
from tests.support.audit_runs import audit
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer


async def test_page_again_is_the_page_of_the_run(
    stub: StubServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stub.put(BUCKET, "open", b"data", acl="public-read")
    result = await audit(stub, tmp_path)
    page = tmp_path / "again.html"
    assert main(["report", str(result.folder), "--out", str(page)]) == 0
    assert page.read_bytes() == (result.folder / "report.html").read_bytes()
    (result.folder / "bucket.json").unlink()
    assert main(["report", str(result.folder), "--out", "-"]) == 1
    assert "bucket.json is gone" in capsys.readouterr().err


async def test_wrong_folder_or_file_is_one_sentence(
    stub: StubServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stub.put(BUCKET, "a", b"data")
    result = await audit(stub, tmp_path)
    (tmp_path / "none").mkdir()
    assert main(["report", str(tmp_path / "none")]) == 2
    assert main(["report", str(result.folder), "--out", str(tmp_path / "no" / "page.html")]) == 1
    (result.folder / "summary.json").unlink()
    assert main(["report", str(result.folder)]) == 2
    assert "has no summary.json" in capsys.readouterr().err
