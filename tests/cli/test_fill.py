"""`auditor audit --fill RUN`: which flags it takes, and how it ends."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tests.cli.conftest import Run
from tests.support.audit_runs import audit, check, read_back
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket


def fill(stub: StubServer, folder: Path) -> tuple[str, ...]:
    return ("audit", "--fill", str(folder), "--endpoint-url", stub.url, "--fail-on", "never")


def test_from_a_denied_right_to_a_full_run(run: Run, stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    items = [bucket.put(f"k{number}", b"x", deny={"acl"} if number % 2 else set()) for number in range(10)]
    before = asyncio.run(audit(stub, tmp_path / "runs"))
    assert before.code == 4
    for item in items:
        item.deny.clear()
    code, out, err = run(*fill(stub, before.folder), "--format", "json", "--max-calls", "18", "--concurrency", "1")
    stopped = json.loads(out)
    assert (code, stopped["complete"]) == (4, False)
    assert f"--fill {before.folder}" in err
    assert f"--resume {stopped['run']}" in err
    assert f"s3://{BUCKET} " not in err.split("resume with:")[1]
    code, out, err = run(*fill(stub, before.folder), "--format", "json", "--resume", stopped["out"])
    after = check(read_back(json.loads(out)))
    assert (code, after.coverage["undecided"], after.summary["run"]) == (0, 0, stopped["run"])
    stub.forget()
    code, out, err = run(*fill(stub, after.folder))
    assert (code, stub.calls) == (0, [])
    assert "nothing is undecided: no call was sent" in err
    assert after.summary["run"] in out


def test_a_run_that_has_not_ended(run: Run, stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    for number in range(40):
        bucket.put(f"k{number:02}", b"x", deny={"acl"})
    before = asyncio.run(audit(stub, tmp_path / "runs", max_calls=40))
    code, out, err = run(*fill(stub, before.folder))
    assert (code, out) == (2, "")
    assert "is not complete, and only a complete run can be filled: complete it first, with the same audit" in err
