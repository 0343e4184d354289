"""`auditor audit` and `auditor judge` print a run as a comment for a pull request, one target after the other."""

from __future__ import annotations

from pathlib import Path

from auditor.offline.folder_place import open_run
from auditor.offline.formats import FORMATS
from tests.cli.conftest import Run
from tests.support.servers.stub import StubServer


def test_a_comment_is_that_of_export(run: Run, stub: StubServer) -> None:
    stub.put("audited", "<b>*.txt", b"x", acl="public-read")
    code, out, _ = run("audit", "s3://audited", "--endpoint-url", stub.url, "--format", "markdown")
    (folder,) = Path("auditor-runs/bucket=audited").glob("run=*")
    with open_run(folder) as reader:
        assert reader.summary is not None
        assert out == "".join(FORMATS["markdown"](reader.summary, reader))
    assert code == 3
    assert "**Strangers can get at 1 object.**" in out
    judged = run("judge", str(folder), "--format", "markdown")
    assert judged[0] == 3
    assert "**Strangers can get at 1 object.**" in judged[1]


def test_the_comment_of_a_target_that_failed_says_so(run: Run, stub: StubServer) -> None:
    stub.put("audited", "a", b"x")
    targets = ["s3://audited", "s3://missing-one"]
    code, out, _ = run("audit", *targets, "--endpoint-url", stub.url, "--format", "markdown")
    assert code == 4
    assert out.count("## S3 audit of ") == 2
    comment = next(part for part in out.split("## S3 audit of ") if part.startswith("s3&#58;//missing-one"))
    assert "**It failed, so nothing is known of it.**" in comment
