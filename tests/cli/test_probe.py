"""`auditor probe` through the command line: the first line, the exit codes, and JSON that can be sent back."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.support.schemas import valid
from tests.support.servers.clients import BUCKET
from tests.support.servers.strangers import StrangersServer
from tests.support.servers.world import World


@pytest.fixture
def server() -> Iterator[StrangersServer]:
    world = World()
    world.add(BUCKET)
    with StrangersServer(world) as server:
        yield server


@pytest.fixture
def run(run: Run, server: StrangersServer) -> Run:
    """Run one command on the server's bucket."""
    return lambda *arguments: run(*arguments, "--endpoint-url", server.url)


def audited(run: Run, server: StrangersServer) -> Path:
    server.put(BUCKET, "private\n")
    server.put(BUCKET, "public", acl="public-read")
    _, out, _ = run("audit", f"s3://{BUCKET}", "--format", "json")
    return Path(json.loads(out)["out"])


def test_a_planted_wrong_verdict(run: Run, server: StrangersServer) -> None:
    folder = audited(run, server)
    (part,) = (folder / "objects").glob("*.jsonl.gz")
    lines = [json.loads(line) for line in gzip.decompress(part.read_bytes()).splitlines()]
    lines = [{**line, "verdict": "private", "audience": [], "reasons": []} for line in lines]
    part.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    code, out, _ = run("probe", str(folder), "--format", "json")
    assert code == 3
    found = json.loads(out)
    valid("probe", found)
    assert (found["compared"], found["agreed"], found["disagreed"]) == (2, 1, 1)
    assert "public" not in out
    code, out, _ = run("probe", str(folder))
    assert (code, out.count("DISAGREES")) == (3, 1)
    assert "DISAGREES public is private: unsigned HeadObject has to be refused, and got 200 and 200\n" in out


def test_nothing_compared(run: Run, server: StrangersServer) -> None:
    folder = audited(run, server)
    for flags, sentence in (
        (("--vantage", "here"), "--vantage 'here' is not an IP address"),
        (("--as", "nobody"), "there is no AWS profile 'nobody'"),
    ):
        code, out, err = run("probe", str(folder), *flags)
        assert (code, out, sentence in err) == (2, "", True)
    for key in ("private\n", "public"):
        server.world.buckets[BUCKET].delete(key)
    code, out, err = run("probe", str(folder))
    assert (code, server.asked) == (4, [])
    assert "  deleted since the run: 2\n" in out
    assert err.startswith("auditor: the probe sends 3 unsigned requests")
    (folder / "summary.json").unlink()
    code, _, err = run("probe", str(folder))
    assert (code, "has no summary, because the run has not ended" in err) == (2, True)
