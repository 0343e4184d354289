"""`auditor who` names a party, and counts its access in a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auditor.config.file import read
from auditor.errors import ConfigError
from auditor.model.object import ALL_USERS, Grant
from tests.cli.conftest import Run
from tests.support.servers.stub import StubServer
from tests.support.servers.world import OWNER, STRANGER


def test_party_is_named_and_counted(run: Run, stub: StubServer, tmp_path: Path) -> None:
    grants = (Grant(OWNER, "FULL_CONTROL"), Grant(STRANGER, "READ"))
    for key in ("a", "b"):
        stub.put("audited", key, b"x", grants=grants)
    _, out, _ = run("audit", "s3://audited", "--endpoint-url", stub.url, "--only", "O08", "--format", "json")
    folder = json.loads(out)["out"]
    unknown = f"{STRANGER}: unknown: no entry of [[accounts]] in auditor.toml names it\n"
    assert run("who", STRANGER)[:2] == (0, unknown)
    assert run("who", STRANGER, "--run", folder)[1] == f"{unknown}  shared: 2 objects\n  O08: 2 findings\n"
    assert "does not mention it" in run("who", "444455556666", "--run", folder)[1]
    (tmp_path / "auditor.toml").write_text(
        f'trusted = ["{STRANGER}"]\n[[accounts]]\nid = "{STRANGER}"\nname = "Printer\\u001b"\nteam = "sales"\n'
    )
    named = f"{STRANGER}: Printer\\x1b (team sales)\n  trusted: its access is not reported as shared\n"
    assert run("who", STRANGER)[1] == named
    assert run("who", ALL_USERS)[1] == f"{ALL_USERS}: everyone: the group AllUsers\n"


def test_wrong_entry_is_one_sentence() -> None:
    number = "4" * 12
    cases: tuple[tuple[object, str], ...] = (
        ({}, "accounts is not an array of tables: write [[accounts]]"),
        ([3], "[[accounts]] is not a table"),
        ([{"id": number}], "[[accounts]]: the key 'name' is missing: write name = \"..\""),
        ([{"id": number, "name": "n" * 201}], "[[accounts]]: name has more than 200 characters: shorten it"),
        ([{"id": "4444-5555-6666", "name": "n"}], "[[accounts]]: id is '4444-5555-6666': write an account's 12 digits"),
        ([{"id": number, "name": "n", "role": "r"}], "[[accounts]]: the key 'role' is unknown: use id, name, team"),
        ([{"id": number, "name": "n"}] * 2, "[[accounts]] 2: '444444444444' has a name already: remove one of them"),
    )
    for entries, sentence in cases:
        with pytest.raises(ConfigError) as caught:
            read({"accounts": entries}, "auditor.toml")
        assert str(caught.value).startswith(f"auditor.toml: {sentence}")
