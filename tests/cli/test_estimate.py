"""`auditor estimate` prints a table or JSON, one for each target and one for their sum."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from auditor.cli.main import main
from auditor.model.target import Target
from auditor.reports.estimate import ClassEstimate, Estimate, EstimatedCalls, estimate_text
from tests.support.paths import ROOT
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket


def estimated(stub: StubServer, *arguments: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "auditor", "estimate", *arguments, "--endpoint-url", stub.url]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def test_json_has_a_line_for_each_target_and_their_sum(stub: StubServer, bucket: StubBucket) -> None:
    for number in range(6):
        bucket.put(f"{'ab'[number % 2]}/{number}", b"xx")
    code, out, _ = estimated(stub, f"s3://{BUCKET}/a/", f"s3://{BUCKET}/b/", "--format", "json")
    first, second, total = map(json.loads, out.splitlines())
    assert (code, first["target"]["prefix"], second["target"]["prefix"], total["target"]) == (0, "a/", "b/", None)
    assert (total["objects"], total["calls"]["acl"], total["complete"]) == (6, 6, True)
    assert total["dollars"] == pytest.approx(first["dollars"] + second["dollars"])
    assert stub.count("GetObjectAcl") == stub.count("HeadObject") == 0


def test_a_table(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    bucket.put("k", b"xx")
    config = tmp_path / "auditor.toml"
    config.write_text("[prices]\nlist = 1000\nSTANDARD = 0\n")
    code, out, err = estimated(stub, f"s3://{BUCKET}", "--config", str(config), "--max-rate", "10")
    lines = {line[:16].strip(): line[16:] for line in out.splitlines() if line[:1] != " "}
    assert (code, lines["objects"]) == (0, "1 object of 2 bytes")
    assert lines["calls"].startswith("1 LIST, 1 ACL, 1 HEAD, ")
    assert lines["cost"] == f"${1 + int(lines['calls'].split()[6])}.00 for S3's requests"
    assert "replaced in auditor.toml: STANDARD, list" in out
    assert lines["time"].endswith("at 10 calls a second")
    assert f"s3://{BUCKET}: 1 object" in err


def test_a_night_that_keeps_facts_of_the_last_run(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    for number in range(6):
        bucket.put(f"k{number}", b"xx")
    flags = (f"s3://{BUCKET}", "--keep", "acl=8d,head=8d", "--out", str(tmp_path / "runs"), "--format", "json")
    assert json.loads(estimated(stub, *flags)[1])["kept"] == {"acl": 0, "head": 0}
    assert not (tmp_path / "runs").exists()
    assert main(["audit", *flags, "--endpoint-url", stub.url]) in (0, 3)
    code, out, _ = estimated(stub, *flags)
    found = json.loads(out)
    assert (code, found["kept"]) == (0, {"acl": 6, "head": 6})
    assert (found["calls"]["acl"], found["calls"]["head"]) == (0, 0)
    code, _, err = estimated(stub, f"s3://{BUCKET}", "--keep", "acl=soon")
    assert code == 2
    assert "Traceback" not in err
    assert "keep" in err


def test_a_bucket_that_is_not_there(stub: StubServer) -> None:
    code, out, err = estimated(stub, "s3://no-such-bucket", f"s3://{BUCKET}")
    assert code == 4
    assert "there is no bucket named" in err
    assert "INCOMPLETE" in out.split("all targets")[1]


def test_wrong_arguments(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["estimate", "s3://bucket", "--ledger", f"sqlite:{tmp_path / 'none.db'}"]) == 2
    assert "does not exist" in capsys.readouterr().err
    assert main(["estimate", "s3://bucket", "--only", "Z99"]) == 2
    assert main(["estimate", "s3://bucket", "--hash"]) == 2


def test_text_of_hostile_names_and_of_an_incomplete_listing() -> None:
    found = Estimate(
        target=Target("bucket", "\x1b[2J"),
        complete=False,
        objects=1,
        bytes=1,
        delete_markers=2,
        classes={"\x1b[31mRED": ClassEstimate(objects=1, bytes=1, acl=1, head=1, dollars=0.00002)},
        calls=EstimatedCalls(list=1, acl=1, head=1, bucket=11),
        dollars=0.00003,
        seconds=3700.0,
        pace="1 call a second",
        data_events_dollars=0.0,
        spent=0.00001,
        unpriced=("\x1b[31mRED",),
        prices={"as_of": "2026-01-02", "region": "us-east-1", "replaced": []},
    )
    text = estimate_text(found, 80)
    assert all(line.isprintable() for line in text.splitlines())
    assert "INCOMPLETE" in text
    assert "no price is known: the highest price is used" in " ".join(text.split())
    assert "1:01:40 at the least" in text
    assert "1/3 of the audit's cost" in text
