"""`auditor estimate` prints a table or JSON, one for each target and one for their sum."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket


@pytest.fixture
def run(run: Run, stub: StubServer, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("AUDITOR_ENDPOINT_URL", stub.url)
    return run


def test_json_has_a_line_for_each_target_and_their_sum(run: Run, stub: StubServer, bucket: StubBucket) -> None:
    for number in range(6):
        bucket.put(f"{'ab'[number % 2]}/{number}", b"xx")
    code, out, _ = run(
        "estimate", "--endpoint-url", stub.url, f"s3://{BUCKET}/a/", f"s3://{BUCKET}/b/", "--format", "json"
    )
    first, second, total = map(json.loads, out.splitlines())
    assert (code, first["target"]["prefix"], second["target"]["prefix"], total["target"]) == (0, "a/", "b/", None)
    assert (total["objects"], total["calls"]["acl"], total["complete"]) == (6, 6, True)
    assert total["dollars"] == pytest.approx(first["dollars"] + second["dollars"])
    assert stub.count("GetObjectAcl") == stub.count("HeadObject") == 0


def test_a_table(run: Run, bucket: StubBucket, tmp_path: Path) -> None:
    bucket.put("k", b"xx")
    config = tmp_path / "auditor.toml"
    config.write_text("[prices]\nlist = 1000\nSTANDARD = 0\n")
    code, out, err = run("estimate", f"s3://{BUCKET}", "--config", str(config), "--max-rate", "100")
    lines = {line[:16].strip(): line[16:] for line in out.splitlines() if line[:1] != " "}
    assert (code, lines["objects"]) == (0, "1 object of 2 bytes")
    assert lines["calls"].startswith("1 LIST, 1 ACL, 1 HEAD, ")
    assert lines["cost"] == f"${1 + int(lines['calls'].split()[6])}.00 for S3's requests"
    assert "replaced in auditor.toml: STANDARD, list" in out
    assert lines["time"].endswith("at 100 calls a second")
    assert f"s3://{BUCKET}: 1 object" in err


def test_a_night_that_keeps_facts_of_the_last_run(
    run: Run, stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    for number in range(6):
        bucket.put(f"k{number}", b"xx")
    flags = (f"s3://{BUCKET}", "--keep", "acl=8d,head=8d", "--out", str(tmp_path / "runs"), "--format", "json")
    assert json.loads(run("estimate", *flags)[1])["kept"] == {"acl": 0, "head": 0}
    assert not (tmp_path / "runs").exists()
    assert run("audit", *flags)[0] in (0, 3)
    code, out, _ = run("estimate", *flags)
    found = json.loads(out)
    assert (code, found["kept"]) == (0, {"acl": 6, "head": 6})
    assert (found["calls"]["acl"], found["calls"]["head"]) == (0, 0)
