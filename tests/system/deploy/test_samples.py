"""Every sample event on an AWS of this machine, nothing deployed: what happened is shown, and a failure is one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import boto3
import pytest

from deploy import python
from deploy.events import kinds
from deploy.events import main as make_event
from deploy.invoke import main
from deploy.options import PYTHON, ROOT
from tests.system.deploy.checks.accounts import tell
from tools.local_aws.functions import keep_log
from tools.local_aws.samples import BUCKET, load

pytestmark = pytest.mark.skipif(python.find() is None, reason=f"there is no python{PYTHON} on this machine")


@pytest.fixture(scope="module")
def package() -> None:
    """As `make invoke-local` builds it."""
    subprocess.run([sys.executable, "-m", "deploy.build", "--local"], cwd=ROOT, check=True, capture_output=True)


@pytest.fixture
def local_url(package: None, moto_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A server with what `make local-aws` has, and variables that lead there."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_url)
    monkeypatch.setenv("AUDITOR_OUT", str(tmp_path / "runs"))
    monkeypatch.setenv("AUDITOR_LEDGER", f"sqlite:{tmp_path / 'digests.db'}")
    tell(moto_url, "reset")
    load(moto_url)
    return moto_url


def run(capsys: pytest.CaptureFixture[str], event: Path, *more: str) -> tuple[int, Any, str]:
    code = main(["--stage", "local", "--undeployed", "--event", str(event), *more])
    said = capsys.readouterr()
    return code, json.loads(said.out) if said.out else None, said.err


def sample(name: str) -> Path:
    return ROOT / "events" / f"{name}.json"


def test_a_sample_shows_what_happened(local_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name in sorted(set(kinds()) - {"verify", "resume"}):
        code, answer, said = run(capsys, sample(name))
        assert code == 0, (name, said)
        assert "INFO " in said
        if "estate" in answer:
            estate = answer["estate"]
            assert (estate["complete"], estate["counts"]["holes"]) == (True, 0), estate
            assert estate["counts"]["audited"] > 0
        elif "runs" in answer:
            assert [one["complete"] for one in answer["runs"]] == [True], name
        elif name.endswith("-acl"):
            assert answer == {"batchItemFailures": []}
        elif name != "s3-test-event":
            assert answer["ledger"], name
            assert all(one.get("digests") or one.get("deleted") for one in answer["ledger"]), name
    code, answer, said = run(capsys, sample("resume"))
    assert (code, "there is no run 20260102T030405Z-a1b2c3 of auditor-sample" in said) == (1, True), said


def test_what_was_hashed_is_verified(local_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, said = run(capsys, sample("verify"), "--function", "verify")
    assert code == 1
    assert "invoke: the verification has a hole: nothing was compared" in said
    assert run(capsys, sample("s3-notification"))[0] == 0
    code, answer, said = run(capsys, sample("verify"), "--function", "verify")
    assert code == 0, said
    (summary,) = answer["runs"]
    assert summary["outcomes"]["match"] == 1


def test_a_failure_is_one(local_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = tmp_path / "event.json"
    for kind, old, new, word in (
        ("s3-notification", "caf%C3%A9", "none", "the ledger has nothing of s3://auditor-sample/photos"),
        ("s3-eventbridge", BUCKET, "no-such-bucket", "warnings or errors"),
        ("s3-notification-sns", '"Notification', '"Unsubscribe', "warnings or errors"),
        ("sqs-batch", "algorithms", "allgorithms", "warnings or errors"),
        ("manual-prefix", BUCKET, "no-such-bucket", "the function failed: "),
    ):
        changed.write_text(sample(kind).read_text().replace(old, new))
        code, _, said = run(capsys, changed)
        assert code == 1, kind
        assert word in said
    assert main(["--stage", "local", "--bucket", BUCKET]) == 1
    assert capsys.readouterr().err.endswith("s3-auditor-local-audit; deploy it: make deploy STAGE=local\n")


def test_an_event_is_made_for_an_object_that_is_there(
    local_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = ["--bucket", BUCKET, "--key", "files/001.txt"]
    assert make_event(["--kind", "s3-eventbridge", *own]) == 0
    made = tmp_path / "event.json"
    made.write_text(capsys.readouterr().out)
    code, answer, said = run(capsys, made)
    assert code == 0, said
    (found,) = answer["ledger"]
    assert (found["key"], list(found["digests"])) == ("files/001.txt", ["sha256"])
    assert make_event(["--kind", "s3-eventbridge", "--bucket", BUCKET, "--key", "none"]) == 1
    assert "s3://auditor-sample/none cannot be asked" in capsys.readouterr().err


def test_a_log_lies_where_make_logs_looks(local_url: str) -> None:
    logs = boto3.Session().client("logs")
    logs.create_log_group(logGroupName="/aws/lambda/s3-auditor-local-audit")
    keep_log(logs, "s3-auditor-local-audit", "one line\n\nanother\n")
    found = logs.filter_log_events(logGroupName="/aws/lambda/s3-auditor-local-audit")["events"]
    assert [one["message"] for one in found] == ["one line", "another"]


def test_stage_local_leads_every_command_to_this_machine() -> None:
    for target in ("logs", "event", "invoke"):
        command = ["make", "--no-print-directory", "-n", target, "STAGE=local"]
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        assert "AWS_ENDPOINT_URL=" in said.stdout.splitlines()[-1], target
