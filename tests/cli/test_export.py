"""`auditor export` over the run folder of a real audit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from auditor.cli.main import main
from auditor.reports.formats import FORMATS
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.security_hub import security_hub
from tests.support.servers.stub import StubServer
from tests.support.servers.world import ACCOUNT, canned

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(stub: StubServer, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    for key in ODD_KEYS.values():
        stub.put("audited", key, grants=canned("public-read", "a0" * 32))
    stub.put("audited", "refused", deny={"acl"})

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return call


def audited(run: Run, stub: StubServer) -> str:
    folder = json.loads(run("audit", "s3://audited", "--format", "json", "--endpoint-url", stub.url)[1])["out"]
    stub.forget()
    return str(folder)


def test_each_format_to_stdout_and_to_a_file_of_its_owner(run: Run, stub: StubServer) -> None:
    folder = audited(run, stub)
    for name in FORMATS:
        code, out, err = run("export", folder, "--format", name)
        assert (code, err) == (0, "")
        file = Path(f"run.{name}")
        assert run("export", folder, "--format", name, "--out", str(file)) == (0, "", "")
        assert file.read_bytes() == out.encode()
        assert file.stat().st_mode & 0o777 == 0o600
    assert stub.requests == []
    assert sorted(path.name for path in Path().iterdir()) == sorted(
        [*(f"run.{name}" for name in FORMATS), "auditor-runs"]
    )


def test_only_the_owner_may_read_the_files_of_a_run(run: Run, stub: StubServer) -> None:
    files = [path for path in Path(audited(run, stub)).rglob("*") if path.is_file() and not path.name.endswith(".lock")]
    assert {path.parent.name for path in files} >= {"objects", "findings", "undecided"}
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in files} == {path.name: "0o600" for path in files}


def test_a_run_without_a_summary(run: Run, stub: StubServer) -> None:
    folder = audited(run, stub)
    Path(folder, "summary.json").unlink()
    code, out, err = run("export", folder, "--format", "csv")
    assert (code, out) == (2, "")
    assert "--resume" in err


def test_a_file_that_cannot_be_written(run: Run, stub: StubServer) -> None:
    folder = audited(run, stub)
    code, out, err = run("export", folder, "--format", "csv", "--out", "missing/run.csv")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "bug" not in err


def test_findings_are_sent_and_refused_ones_named(run: Run, stub: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = audited(run, stub)
    with security_hub() as hub:
        monkeypatch.setenv("AWS_ENDPOINT_URL", hub.url)
        code, out, err = run("export", folder, "--format", "asff", "--send")
        assert (code, err) == (0, "")
        sent = f"{len(hub.findings)} findings sent, 0 archived, 0 kept"
        assert out == f"Security Hub of account {ACCOUNT} in us-east-1: {sent}\n"
        assert hub.of_kind("undecided")
        hub.refuse["/coverage"] = "InvalidInput\x1b"
        code, out, err = run("export", folder, "--format", "asff", "--send", "--out", "run.json")
        assert code == 1
        assert "/coverage: InvalidInput\\x1b\n" in err
        assert {one["Id"] for one in json.loads(Path("run.json").read_text())} == set(hub.findings)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--format", "csv", "--send"], "--format asff"),
        (["--format", "asff", "--account", "1"], "12 digits"),
        (["--format", "asff", "--region", "x y/z"], "--region 'x y/z' is not a region"),
        (["--format", "csv", "--account", "111122223333"], "--format asff"),
    ],
)
def test_wrong_choices_for_security_hub(run: Run, stub: StubServer, arguments: list[str], said: str) -> None:
    code, out, err = run("export", "missing", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_the_account_and_the_region_are_the_runs_or_the_given_ones(run: Run, stub: StubServer) -> None:
    folder = audited(run, stub)
    own = json.loads(run("export", folder, "--format", "asff")[1])[0]
    assert own["ProductArn"] == f"arn:aws:securityhub:us-east-1:{ACCOUNT}:product/{ACCOUNT}/default"
    given = ["--account", "9" * 12, "--region", "us-gov-west-1"]
    other = json.loads(run("export", folder, "--format", "asff", *given)[1])[0]
    assert other["ProductArn"] == f"arn:aws-us-gov:securityhub:us-gov-west-1:{'9' * 12}:product/{'9' * 12}/default"
