"""`auditor audit --fill RUN`: which flags it takes, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from auditor.cli.audits import resume_command
from auditor.cli.help import make_parser
from auditor.cli.main import main
from auditor.model.target import Target
from tests.support.audit_runs import audit, check, read_back
from tests.support.paths import ROOT
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket

RUN = "20260102T030405Z-0a1b2c"


def filled(stub: StubServer, folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Run the command in a process of its own. Return its exit code, stdout and stderr."""
    fixed = ["--endpoint-url", stub.url, "--fail-on", "never"]
    command = [sys.executable, "-m", "auditor", "audit", "--fill", str(folder), *fixed, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


async def test_from_a_denied_right_to_a_full_run(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    items = [bucket.put(f"k{number}", b"x", deny={"acl"} if number % 2 else set()) for number in range(10)]
    before = await audit(stub, tmp_path)
    assert before.code == 4
    for item in items:
        item.deny.clear()
    code, out, err = filled(stub, before.folder, "--format", "json", "--max-calls", "18", "--concurrency", "1")
    stopped = json.loads(out)
    assert (code, stopped["complete"]) == (4, False)
    assert f"--fill {before.folder}" in err
    assert f"--resume {stopped['run']}" in err
    assert f"s3://{BUCKET} " not in err.split("resume with:")[1]
    code, out, err = filled(stub, before.folder, "--format", "json", "--resume", stopped["out"])
    after = check(read_back(json.loads(out)))
    assert (code, after.coverage["undecided"], after.summary["run"]) == (0, 0, stopped["run"])
    stub.forget()
    code, out, err = filled(stub, after.folder)
    assert (code, stub.calls) == (0, [])
    assert "nothing is undecided: no call was sent" in err
    assert after.summary["run"] in out


async def test_a_run_that_has_not_ended(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    for number in range(40):
        bucket.put(f"k{number:02}", b"x", deny={"acl"})
    before = await audit(stub, tmp_path, max_calls=40)
    code, out, err = filled(stub, before.folder)
    assert (code, out) == (2, "")
    assert "is not complete, and only a complete run can be filled: complete it first, with the same audit" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["s3://bucket"], "leave out the target"),
        (["--only", "O02"], "--only cannot be combined with --fill"),
        (["--stop-at", "k"], "--stop-at cannot be combined with --fill"),
        (["--ledger", "sqlite:d.db"], "--ledger cannot be combined with --fill"),
        (["--out", "elsewhere"], "--out cannot be combined with --fill"),
    ],
)
def test_flags_that_are_those_of_the_run(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--fill", f"runs/bucket=b/run={RUN}", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_run_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--fill", str(tmp_path / f"bucket=audited/run={RUN}")]) == 2
    assert "there is no run at" in capsys.readouterr().err


def test_an_audit_without_a_target(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["audit"])
    assert (
        "arguments are required: s3://BUCKET[/PREFIX], or --all-buckets, --estate or --fill" in capsys.readouterr().err
    )


def test_the_command_that_goes_on_names_no_target() -> None:
    options = make_parser().parse_args(["audit", "--fill", "a folder", "--max-rate", "5"])
    again = resume_command(options, Target("bucket"), RUN)
    assert again.endswith(f"audit --max-rate 5 --fill 'a folder' --resume {RUN}")
