"""One server and one world for all tests of this folder, and a clear word where the server is not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT
from tests.support.servers.rgw import RgwServer, available
from tests.system.real.oracle import Truth, ask
from tests.system.real.world import Place, World, build

HERE = Path(__file__).parent
Command = Callable[..., str]
"""Runs the command line, and returns its output."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder, and no other, is `real`; those of RGW are skipped before any fixture is made."""
    reason = available()
    for item in items:
        if not item.path.is_relative_to(HERE):
            continue
        item.add_marker(pytest.mark.real)
        if reason and item.path.name.startswith("test_rgw_"):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def rgw() -> Iterator[RgwServer]:
    with RgwServer() as server:
        yield server


@pytest.fixture(scope="session")
def world(rgw: RgwServer) -> World:
    return build(rgw)


@pytest.fixture(scope="session")
def truth(rgw: RgwServer, world: World) -> Mapping[Place, Truth]:
    """The server's own word on every place; delete markers included."""
    return ask(rgw, [*world.places, *world.markers])


@pytest.fixture(scope="session")
def owner(rgw: RgwServer, world: World) -> Iterator[Any]:
    """The S3 client of the account that has the buckets, which are there."""
    with closing(rgw.client(rgw.owner)) as client:
        yield client


@pytest.fixture(scope="session")
def clients(rgw: RgwServer) -> Iterator[tuple[Any, Any]]:
    """The S3 clients of the buckets' owner and of the other account."""
    with closing(rgw.client(rgw.owner)) as owner, closing(rgw.client(rgw.other)) as other:
        yield owner, other


def run_auditor(rgw: RgwServer, cwd: Path, *arguments: str, **environ: str) -> tuple[int, str]:
    """Run the command line as the buckets' owner; its exit code, and its output in JSON."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "AUDITOR_"))}
    kept |= {"AWS_ACCESS_KEY_ID": rgw.owner.access_key, "AWS_SECRET_ACCESS_KEY": rgw.owner.secret_key}
    done = subprocess.run(
        [sys.executable, "-m", "auditor", *arguments, "--format", "json"],
        env={**kept, "AWS_EC2_METADATA_DISABLED": "true", "PYTHONPATH": str(ROOT), **environ},
        cwd=cwd,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in (0, 3, 4), done.stderr.decode()
    return done.returncode, done.stdout.decode()


@pytest.fixture
def auditor(rgw: RgwServer, tmp_path: Path) -> Command:
    """Run the command line as the buckets' owner; its output."""
    return lambda *arguments: run_auditor(rgw, tmp_path, *arguments)[1]
