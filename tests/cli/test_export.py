"""`auditor export` over the run folder of a real audit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auditor.offline.formats import FORMATS
from tests.cli.conftest import Run
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.security_hub import security_hub
from tests.support.servers.stub import StubServer
from tests.support.servers.world import ACCOUNT, canned


@pytest.fixture
def folder(run: Run, stub: StubServer) -> str:
    """The folder of a run over odd keys and a refused object."""
    for key in ODD_KEYS.values():
        stub.put("audited", key, grants=canned("public-read", "a0" * 32))
    stub.put("audited", "refused", deny={"acl"})
    found = json.loads(run("audit", "s3://audited", "--format", "json", "--endpoint-url", stub.url)[1])["out"]
    stub.forget()
    return str(found)


def test_each_format_to_stdout_and_to_a_file_of_its_owner(run: Run, folder: str, stub: StubServer) -> None:
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


def test_what_cannot_be_exported(run: Run, folder: str) -> None:
    code, out, err = run("export", folder, "--format", "csv", "--out", "missing/run.csv")
    assert (code, out, err.count("\n"), "bug" in err) == (1, "", 1, False)
    Path(folder, "summary.json").unlink()
    code, out, err = run("export", folder, "--format", "csv")
    assert (code, out, "--resume" in err) == (2, "", True)


def test_findings_are_sent_and_refused_ones_named(run: Run, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_the_account_and_the_region_are_the_runs_or_the_given_ones(run: Run, folder: str, stub: StubServer) -> None:
    own = json.loads(run("export", folder, "--format", "asff")[1])[0]
    assert own["ProductArn"] == f"arn:aws:securityhub:us-east-1:{ACCOUNT}:product/{ACCOUNT}/default"
    given = ["--account", "9" * 12, "--region", "us-gov-west-1"]
    other = json.loads(run("export", folder, "--format", "asff", *given)[1])[0]
    assert other["ProductArn"] == f"arn:aws-us-gov:securityhub:us-gov-west-1:{'9' * 12}:product/{'9' * 12}/default"
