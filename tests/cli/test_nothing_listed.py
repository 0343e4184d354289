"""A named prefix under which nothing is listed is a hole, by one rule for all: command line, functions and library."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import auditor
from auditor.lambdas.audit import AuditFunction
from auditor.lambdas.verify import VerifyFunction
from tests.cli.conftest import Run
from tests.support.function_account import Account
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer

LEDGER = ("--ledger", "sqlite:digests.db")
COMMANDS = {
    "audit": ("audit", "--ignore", "B01,B02"),
    "hash": ("hash", *LEDGER),
    "verify": ("verify", *LEDGER),
}


@pytest.fixture
def run(run: Run, stub: StubServer, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run one command in an empty directory. The bucket has an object below typo/, which the ledger knows."""
    monkeypatch.setenv("AUDITOR_ENDPOINT_URL", stub.url)
    stub.put(BUCKET, "typo/a", b"x")
    stub.world.add("empty-one")
    assert run("hash", f"s3://{BUCKET}", *LEDGER)[0] == 0
    return run


def test_one_rule_for_every_command(run: Run, stub: StubServer) -> None:
    for command, (name, *flags) in COMMANDS.items():
        code, out, _ = run(name, f"s3://{BUCKET}/tpyo/", *flags)
        assert (code, "nothing is listed" in out or "nothing is there" in out) == (4, True), command
        for target, more in ((f"s3://{BUCKET}/tpyo/", ["--allow-empty"]), (f"s3://{BUCKET}/typo/", [])):
            assert run(name, target, *flags, *more)[0] == 0, command
        assert run(name, "s3://empty-one", *flags)[0] == 0, command
    assert run(*COMMANDS["audit"], f"s3://{BUCKET}/tpyo/", "--jobs", "2")[0] == 4
    stub.world.buckets[BUCKET].versioning = "Enabled"
    stub.world.buckets[BUCKET].delete("gone/a")  # a delete marker is something
    for command in ("audit", "hash", "verify"):
        name, *flags = COMMANDS[command]
        assert run(name, f"s3://{BUCKET}/gone/", *flags, "--versions")[0] == 0, command
        assert run(name, f"s3://{BUCKET}/gone/", *flags)[0] == 4, command


def test_hole_stays_in_the_folder_and_in_what_is_made_of_it(run: Run) -> None:
    code, out, _ = run(*COMMANDS["audit"], f"s3://{BUCKET}/tpyo/", "--format", "json")
    summary = json.loads(out)
    assert (code, summary["complete"], summary["nothing_listed"]) == (4, True, True)
    folder = Path(summary["out"])
    assert json.loads((folder / "summary.json").read_text())["nothing_listed"] is True
    assert ">nothing is listed</li>" in (folder / "report.html").read_text()
    assert run("check", summary["out"])[0] == 0
    assert run("judge", summary["out"])[0] == 4
    for name in ("table", "markdown", "jsonl", "csv", "ocsf", "asff"):
        assert "nothing is listed" in run("export", summary["out"], "--format", name)[1], name


def test_library(run: Run, stub: StubServer) -> None:
    place: dict[str, Any] = {"endpoint_url": stub.url, "ignore": ["B01", "B02"]}
    for allowed in (False, True):
        summary = auditor.audit_bucket(f"s3://{BUCKET}/tpyo/", **place, allow_empty=allowed).summary
        assert summary is not None
        assert summary.nothing_listed is not allowed
    ledger: dict[str, Any] = {"endpoint_url": stub.url, "ledger": "sqlite:digests.db"}
    assert auditor.hash_bucket(f"s3://{BUCKET}/tpyo/", **ledger).holes == ("nothing is listed",)
    assert auditor.hash_bucket(f"s3://{BUCKET}/tpyo/", **ledger, allow_empty=True).holes == ()
    assert auditor.verify_bucket(f"s3://{BUCKET}/tpyo/", **ledger, allow_empty=True).holes == ()


@pytest.mark.parametrize("function", [AuditFunction, VerifyFunction])
@pytest.mark.parametrize("allowed", [False, True])
async def test_function(
    run: Run, stub: StubServer, function: Callable[..., Any], allowed: bool, tmp_path: Path
) -> None:
    environ = {
        "AUDITOR_ENDPOINT_URL": stub.url,
        "AUDITOR_OUT": str(tmp_path / "runs"),
        "AUDITOR_LEDGER": "sqlite:digests.db",
        "AUDITOR_IGNORE": "B01,B02",
    }
    account = Account()
    event = {"bucket": BUCKET, "prefix": "tpyo/", **({"allow_empty": True} if allowed else {})}
    (summary,) = (await function(environ).handle(event, account.around()))["runs"]
    ((_, detail),) = account.finished
    assert (detail["exit_code"], detail["alert"]) == ((0, False) if allowed else (4, True))
    assert len(account.messages) == (0 if allowed else 1)
    if function is AuditFunction:
        assert summary["nothing_listed"] is not allowed
    else:
        assert bool(summary["holes"]) is not allowed


def test_no_bucket_visible_to_an_estate(run: Run, stub: StubServer) -> None:
    stub.world.buckets.clear()
    words = "no bucket is visible to these credentials, so nothing was looked at"
    code, out, _ = run("audit", "--all-buckets", "--format", "json")
    report = json.loads(out)
    assert (code, report["exit_code"], report["complete"]) == (4, 4, False)
    assert report["line"] == f"0 buckets in 1 account = 0 audited + 0 excluded + 0 holes: {words}"
