"""`auditor hash` as a process: signals, settings that are not flags, and several targets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.cli.conftest import Run
from tests.support.paths import ROOT
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer


def test_what_was_not_hashed_is_one_sentence_and_the_configuration_accepts_it(
    run: Run, stub: StubServer, tmp_path: Path
) -> None:
    stub.put(BUCKET, "deep", b"data", storage_class="DEEP_ARCHIVE")
    flags = ("--ledger", "sqlite:digests.db", "--endpoint-url", stub.url)
    code, out, _ = run("hash", f"s3://{BUCKET}", *flags)
    assert (code, f"s3://{BUCKET}/: HOLE: 1 object not hashed (1 archived)\n" in out) == (4, True)
    until = datetime.now(UTC).date() + timedelta(days=9)
    entry = f'[[exceptions]]\ncode = "archived"\nreason = "tapes"\nowner = "archive"\nuntil = {until}\n'
    (tmp_path / "auditor.toml").write_text(entry)
    code, out, _ = run("hash", f"s3://{BUCKET}", *flags)
    assert (code, "HOLE" in out, "accepted in the configuration: 1 object\n" in out) == (0, False, True)
    stub.world.add("other-bucket").put("key", b"data")
    code, out, err = run("hash", "s3://no-such-bucket", "s3://other-bucket", *flags, "--format", "json")
    assert (code, "no-such-bucket" in err, json.loads(out)["hashing"]["hashed_now"]) == (4, True, 1)


def test_full_disk_is_no_outage(stub: StubServer, tmp_path: Path) -> None:
    for number in range(200):
        stub.put(BUCKET, f"{number:04}-{'long' * 200}", b"data")
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000));"
        "from auditor.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = ["hash", f"s3://{BUCKET}", "--endpoint-url", stub.url, "--ledger", f"sqlite:{tmp_path}/digests.db"]
    child = subprocess.run(
        [sys.executable, "-c", script, *command],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert child.returncode == 1, child.stderr
    last = child.stderr.splitlines()[-1]
    assert "digests.db" in last
    assert "the disk reports an error" in last
    assert "waits" not in child.stderr
    assert stub.count("GetObject") > 0
