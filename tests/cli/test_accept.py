"""`auditor accept` prints an entry that covers the finding, whatever its key is, and nothing else."""

from __future__ import annotations

import json
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import auditor
from auditor.config.file import read
from auditor.errors import UsageError
from auditor.model.exception import covers_key
from auditor.model.finding import Severity
from auditor.model.object import ALL_USERS
from auditor.model.run_lines import FindingLine
from auditor.offline.accept import entry_for
from tests.cli.conftest import Run
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.stub import StubServer

SOON = (datetime.now(UTC).date() + timedelta(days=30)).isoformat()


def line(key: str | None) -> FindingLine:
    return FindingLine("f" * 32, "O02", Severity.HIGH, key, None, ALL_USERS, "READ", "m", None, None, None)


def test_entry_covers_the_key_and_prints_nothing_odd() -> None:
    for key in (*ODD_KEYS.values(), "a*b", 'a"\\', "\x1b[2J\x7f\x85\u202e\U000e0001", None):
        text = entry_for(line(key), "audited", owner="o", reason="r", until=SOON)
        assert text.replace("\n", "").isprintable()
        (entry,) = read(tomllib.loads(text), "auditor.toml")[1]["exceptions"]
        assert (entry.rule, entry.bucket, entry.grantee) == ("O02", "audited", ALL_USERS)
        if key is None:  # a finding on the bucket
            assert (entry.prefix, entry.pattern) == (None, None)
            continue
        assert covers_key(entry, key), ascii(key)
        assert entry.pattern is None or not covers_key(entry, f"{key}2")
    with pytest.raises(UsageError, match="write a prefix or pattern by hand"):
        entry_for(line("a\ud800"), "audited", owner="o", reason="r", until=SOON)


def test_accepted_finding_raises_no_exit_code_in_the_next_run(run: Run, stub: StubServer, tmp_path: Path) -> None:
    stub.put("audited", "open.txt", b"x", acl="public-read")
    base = ["audit", "s3://audited", "--endpoint-url", stub.url, "--only", "O02"]
    code, out, _ = run(*base, "--format", "json")
    folder = json.loads(out)["out"]
    assert code == 3
    (found,) = auditor.open_run(folder).findings()
    for flags, words in (((), ""), (("--until", "tomorrow"), "write a day"), (("--until", "2020-01-01"), "is past")):
        code, _, err = run("accept", "0" * 32, "--run", folder, *flags)
        assert (code, words in err) == (2, True)
    code, text, err = run("accept", found.fingerprint, "--run", folder, "--owner", "web", "--reason", "site")
    assert (code, err) == (0, "auditor: append this to auditor.toml\n")
    (tmp_path / "auditor.toml").write_text(text, encoding="utf-8")
    code, out, _ = run(*base)
    assert code == 0
    assert f"{'By intent':16}1 high finding" in out.splitlines()
