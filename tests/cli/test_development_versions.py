"""A run folder that a development version wrote is refused by each command, with one sentence and exit code 2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

import auditor
from auditor.errors import OldRun
from auditor.reports.changes import NO_RUN
from tests.cli.conftest import Run
from tests.support.servers.stub import StubServer

REFUSED: Final = "was written by a development version: audit again"
WITHOUT_V: Final = ("summary.json", "latest.json")
"""The files to which development versions gave no number."""


def age(file: Path) -> None:
    """Give a JSON file the number that development versions gave it."""
    value = json.loads(file.read_text())
    assert value.pop("format") == 1
    file.write_text(json.dumps(value if file.name in WITHOUT_V else {"v": 1, **value}))


def night(run: Run, stub: StubServer, *more: str) -> Path:
    """Audit the bucket, and return the run's folder."""
    code, out, err = run("audit", "s3://audited", "--endpoint-url", stub.url, "--format", "json", *more)
    assert code in (0, 3, 4), err
    return Path("auditor-runs") / "bucket=audited" / f"run={json.loads(out)['run']}"


@pytest.fixture
def old(run: Run, stub: StubServer) -> Path:
    """A complete run whose files are all of a development version."""
    stub.put("audited", "site/a", b"x", acl="public-read")
    stub.put("audited", "vault/b", b"x", deny={"acl"})
    folder = night(run, stub)
    for file in (*folder.glob("*.json"), folder.parent / "latest.json"):
        age(file)
    return folder


def check_refused(answer: tuple[int, str, str]) -> None:
    code, out, err = answer
    assert (code, REFUSED in err) == (2, True), err
    assert "Traceback" not in err
    assert "ALTERED" not in out + err


COMMANDS: Final = """
check RUN
report RUN
export RUN --format csv
export RUN --format table
explain s3://audited/site/a --run RUN
diff RUN RUN
judge RUN
what-if RUN --acls-off
fix-kit RUN --out kit
sql RUN SELECT
accept 0123456789ab --run RUN --owner me --reason r
accept ffffffffffffffffffffffffffffffff --run RUN --owner me --reason r
who 444455556666 --run RUN
audit --fill RUN --endpoint-url URL
audit s3://audited --resume ID --endpoint-url URL
audit s3://audited --resume ID --jobs 2 --endpoint-url URL
"""


def test_each_command_that_reads_the_run_refuses_it(run: Run, stub: StubServer, old: Path) -> None:
    words = {"RUN": str(old), "ID": old.name.removeprefix("run="), "URL": stub.url, "SELECT": "SELECT 1"}
    commands = [[words.get(word, word) for word in line.split()] for line in COMMANDS.strip().splitlines()]
    for command in commands:
        check_refused(run(*command))
    with pytest.raises(OldRun, match=REFUSED):
        auditor.open_run(old)
    (old / "summary.json").unlink()  # as a run that has not ended
    for command in (commands[0], commands[-2]):
        check_refused(run(*command))


def test_an_audit_into_the_same_place_begins_anew(run: Run, stub: StubServer, old: Path) -> None:
    code, out, _ = run("report", "auditor-runs", "--out", "-")
    assert (code, REFUSED in out) == (0, True)  # as the reason why the index has no numbers of the bucket
    new = night(run, stub)
    assert json.loads((new / "summary.json").read_text())["changes"]["why_not"] == NO_RUN
    latest = json.loads((new.parent / "latest.json").read_text())
    assert latest == {"format": 1, "runs": {"current": {"": new.name.removeprefix("run=")}, "versions": {}}}
    assert run("check", str(new))[0] == 0


def test_the_report_of_an_estate(run: Run, stub: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", stub.url)
    stub.put("audited", "a", b"x")
    assert run("audit", "--all-buckets")[0] in (0, 3, 4)
    (last,) = Path("auditor-runs").glob("account=*/estate.json")
    age(last)
    check_refused(run("audit", "--all-buckets"))
    assert run("audit", "--all-buckets", "--out", "other")[0] in (0, 3, 4)
