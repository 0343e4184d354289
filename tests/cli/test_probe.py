"""`auditor probe` through the command line: the first line, the exit codes, and JSON that can be sent back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run
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
