"""A damaged row of the ledger accuses no object: the history stands for it, and each command writes it anew."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer

HEALED = "1 damaged row of the ledger rewritten from the history"
Do = Callable[..., tuple[int, str]]


@pytest.fixture
def do(run: Run, stub: StubServer, monkeypatch: pytest.MonkeyPatch) -> Do:
    """Runs a command on a ledger with the digests of three objects, of which the row of one is rotted."""
    for name, value in {"ENDPOINT_URL": stub.url, "LEDGER": "sqlite:digests.db", "FAIL_ON": "never"}.items():
        monkeypatch.setenv(f"AUDITOR_{name}", value)
    for key in ("a", "b", "c"):
        stub.put(BUCKET, key, key.encode())

    def command(*arguments: str) -> tuple[int, str]:
        code, out, err = run(*arguments)
        assert "DigestConflict" not in err
        return code, out

    assert command("hash", f"s3://{BUCKET}")[0] == 0
    damage("UPDATE digests SET digest = ? WHERE key = ?", "0" * 64, b"b")
    stub.forget()
    return command


def damage(statement: str, *values: object) -> None:
    with closing(sqlite3.connect("digests.db")) as connection, connection:
        connection.execute("DROP TRIGGER IF EXISTS history_is_never_changed")
        assert connection.execute(statement, values).rowcount == 1


def document(do: Do, *arguments: str) -> tuple[int, dict[str, Any]]:
    code, out = do(*arguments, "--format", "json")
    found: dict[str, Any] = json.loads(out)
    return code, found


def test_hash_knows_the_object_and_heals_the_row(do: Do, stub: StubServer) -> None:
    code, found = document(do, "hash", f"s3://{BUCKET}")
    assert (code, found["hashing"]["known"], found["healed"], found["holes"]) == (0, 3, 1, [])
    code, found = document(do, "hash", f"s3://{BUCKET}")
    assert (code, found["hashing"]["known"], found["healed"]) == (0, 3, 0)
    assert stub.count("GetObject") == 0
    assert do("ledger", "--check")[0] == 0


def test_audit_counts_the_healed_row_in_table_page_and_json(do: Do) -> None:
    code, out = do("audit", f"s3://{BUCKET}", "--hash")
    assert code == 0
    assert HEALED in " ".join(out.split())
    (folder,) = Path("auditor-runs").glob(f"bucket={BUCKET}/run=*")
    assert HEALED in (folder / "report.html").read_text()
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["healed"], summary["hashing"]["known"], summary["hashing"]["failed"]) == (1, 3, {})
    assert document(do, "audit", f"s3://{BUCKET}", "--hash")[1]["healed"] == 0


def test_verification_counts_the_healed_row_in_table_page_and_json(do: Do) -> None:
    code, out = do("verify", f"s3://{BUCKET}")
    assert code == 0
    assert HEALED in out
    (page,) = Path("auditor-runs").glob(f"bucket={BUCKET}/**/report.html")
    assert "Damaged rows of the ledger rewritten" in page.read_text()
    (summary,) = Path("auditor-runs").glob(f"bucket={BUCKET}/**/summary.json")
    found = json.loads(summary.read_text())
    assert (found["healed"], found["outcomes"]["match"], found["outcomes"]["ledger_fault"]) == (1, 3, 0)
    assert document(do, "verify", f"s3://{BUCKET}")[1]["healed"] == 0


def test_whole_ledger_is_repaired(do: Do) -> None:
    code, found = document(do, "ledger", "--check")
    assert (code, found["rows"]["damaged"], "healed" in found) == (3, 1, False)
    code, out = do("ledger", "--repair")
    assert (code, HEALED in out) == (0, True)
    code, found = document(do, "ledger", "--repair", "sqlite:digests.db")
    assert (code, found["healed"], found["rows"], found["complete"]) == (
        0,
        0,
        {"sound": 3, "damaged": 0},
        True,
    )


def test_row_and_line_that_are_both_damaged_stay_and_are_named(do: Do) -> None:
    damage("UPDATE history SET at = 'x' WHERE key = ?", b"b")
    code, found = document(do, "ledger", "--repair")
    assert (code, found["healed"], [one["kind"] for one in found["damage"]]) == (3, 0, ["row", "line"])
    code, out = do("ledger", f"s3://{BUCKET}/b")
    assert code == 0
    assert out.count("DAMAGED") == 3  # the row, its digest, and the line
    assert "--repair" not in out
    code, found = document(do, "hash", f"s3://{BUCKET}")
    assert (code, found["hashing"]["failed"], found["healed"]) == (4, {"DigestConflict": 1}, 0)


def test_digest_that_the_ledger_cannot_keep_is_a_failure(do: Do) -> None:
    assert do("ledger", "--repair")[0] == 0
    damage("UPDATE digests SET seal = 'x' WHERE key = ?", b"a")
    damage("UPDATE history SET at = 'x' WHERE key = ?", b"a")
    for command in (("hash", f"s3://{BUCKET}"), ("audit", f"s3://{BUCKET}", "--hash")):
        code, found = document(do, *command)
        hashing = found["hashing"]
        assert (code, hashing["failed"], hashing["known"], hashing["hashed_now"]) == (4, {"LedgerFault": 1}, 2, 0)


ROTTED = ("x'41ff'", "CAST(x'41ff' AS TEXT)", "'nil'")
"""Values of another type than the column has, or no UTF-8: one bit of the file makes them of a sound value."""
DIGESTS = "etag version_id algorithm size digest hashed_at source verified_at bytes_read seal"
VERSIONS = "etag version_id first_seen recorded_place told_place sequencer"


def test_values_of_another_type_are_damage_that_no_command_breaks_on(do: Do) -> None:
    assert do("ledger", "--repair")[0] == 0
    for column, value in zip(DIGESTS.split(), itertools.cycle(ROTTED), strict=False):
        damage(f"UPDATE digests SET {column} = {value} WHERE key = ?", b"b")
        assert do("ledger", "--check")[0] == 3, column
        assert do("ledger", f"s3://{BUCKET}/b")[0] == 0, column
        code, found = document(do, "verify", f"s3://{BUCKET}")
        assert (code, found["outcomes"]["match"], found["healed"]) == (0, 3, 1), column
        assert do("ledger", "--check")[0] == 0, column
    for column, value in zip(VERSIONS.split(), itertools.cycle(ROTTED[1:]), strict=False):
        damage(f"UPDATE versions SET {column} = {value} WHERE key = ?", b"b")
        assert do("ledger", f"s3://{BUCKET}/b")[0] == 0, column
        assert do("verify", f"s3://{BUCKET}")[0] in (0, 3, 4), column
