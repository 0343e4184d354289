"""`auditor accept` prints an entry that covers the finding, whatever its key is, and nothing else."""

from __future__ import annotations

import json
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import auditor
from auditor.config.file import read
from auditor.errors import UsageError
from auditor.model.exception_matching import covers_key
from auditor.model.finding import Severity
from auditor.model.object import ALL_USERS
from auditor.model.run_lines import FindingLine
from auditor.reports.accept import entry_for
from tests.cli.conftest import Run
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.stub import StubServer

SOON = (datetime.now(UTC).date() + timedelta(days=30)).isoformat()


def line(key: str | None) -> FindingLine:
    return FindingLine("f" * 32, "O02", Severity.HIGH, key, None, ALL_USERS, "READ", "m", None, None, None)


@pytest.mark.parametrize("key", [*ODD_KEYS, "a*b", 'a"\\', "\x1b[2J\x7f\x85\u202e\U000e0001"])
def test_entry_covers_the_key_and_prints_nothing_odd(key: str) -> None:
    text = entry_for(line(key), "audited", owner="o", reason="r", until=SOON)
    assert text.replace("\n", "").isprintable()
    (entry,) = read(tomllib.loads(text), "auditor.toml")[1]["exceptions"]
    assert covers_key(entry, key)
    assert entry.pattern is None or not covers_key(entry, f"{key}2")
    assert (entry.rule, entry.bucket, entry.grantee) == ("O02", "audited", ALL_USERS)


def test_finding_on_the_bucket_has_no_key() -> None:
    text = entry_for(line(None), "audited", owner="o", reason="r", until=SOON)
    (entry,) = read(tomllib.loads(text), "auditor.toml")[1]["exceptions"]
    assert (entry.prefix, entry.pattern) == (None, None)


def test_lone_surrogate_is_refused_in_a_sentence() -> None:
    with pytest.raises(UsageError, match="write a prefix or pattern by hand"):
        entry_for(line("a\ud800"), "audited", owner="o", reason="r", until=SOON)


def test_accepted_finding_raises_no_exit_code_in_the_next_run(run: Run, stub: StubServer, tmp_path: Path) -> None:
    stub.put("audited", "open.txt", b"x", acl="public-read")
    base = ["audit", "s3://audited", "--endpoint-url", stub.url, "--only", "O02"]
    code, out, _ = run(*base, "--format", "json")
    summary: dict[str, Any] = json.loads(out)
    assert code == 3
    (found,) = auditor.open_run(summary["out"]).findings()
    code, text, err = run("accept", found.fingerprint, "--run", summary["out"], "--owner", "web", "--reason", "site")
    assert (code, err) == (0, "auditor: append this to auditor.toml\n")
    (tmp_path / "auditor.toml").write_text(text, encoding="utf-8")
    code, out, _ = run(*base)
    assert code == 0
    assert f"{'By intent':16}1 high finding" in out.splitlines()


def test_wrong_fingerprint_or_day_is_one_sentence(run: Run, stub: StubServer) -> None:
    stub.put("audited", "open.txt", b"x")
    _, out, _ = run("audit", "s3://audited", "--endpoint-url", stub.url, "--only", "O02", "--format", "json")
    folder = json.loads(out)["out"]
    assert run("accept", "0" * 32, "--run", folder)[0] == 2
    code, _, err = run("accept", "0" * 32, "--run", folder, "--until", "tomorrow")
    assert code == 2
    assert "until is 'tomorrow': write a day" in err
    code, _, err = run("accept", "0" * 32, "--run", folder, "--until", "2020-01-01")
    assert (code, "--until 2020-01-01 is past" in err) == (2, True)
