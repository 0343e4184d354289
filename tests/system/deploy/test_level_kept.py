"""A deployment that names no level does not take away what a higher one has made; against a local server."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from auditor.ledger.dynamodb.ledger import create_table
from tests.support.paths import ROOT
from tests.system.deploy.checks.packaged import given, needs_osls, refusal, run
from tests.system.e2e.deployment import serving

STACK = "s3-auditor-trial"
SERVER = shutil.which(str(ROOT / ".venv-deploy" / "bin" / "moto_server"))
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_REGION": "us-east-1"}
REFUSED = f"{STACK} is deployed at level fixity, and this would lower it to metadata, which removes the hashing worker"
pytestmark = [needs_osls, pytest.mark.skipif(SERVER is None, reason="moto's server is not installed: .venv-deploy")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    assert SERVER is not None
    with serving(SERVER, tmp_path_factory.mktemp("server") / "log") as url:
        yield url


def arguments(*parameters: str) -> list[str]:
    return ["--stage", "trial", *given("buckets=photos", *parameters)]


def client(url: str, service: str) -> Any:
    return boto3.client(service, endpoint_url=url)


def deploy(url: str, folder: Path, *parameters: str) -> subprocess.CompletedProcess[str]:
    return run(folder, arguments(*parameters), command="deploy", plugin="level.js", AWS_ENDPOINT_URL=url, **KEYS)


def functions(url: str) -> set[str]:
    return {
        one["FunctionName"].removeprefix(f"{STACK}-") for one in client(url, "lambda").list_functions()["Functions"]
    }


def outputs(url: str) -> dict[str, str]:
    (stack,) = client(url, "cloudformation").describe_stacks(StackName=STACK)["Stacks"]
    return {one["OutputKey"]: one["OutputValue"] for one in stack["Outputs"]}


def test_a_worker_is_removed_only_when_the_lower_level_is_named(server: str, tmp_path: Path) -> None:
    asyncio.run(create_table("digests", endpoint_url=server))
    made = deploy(server, tmp_path / "first", "level=fixity", "ledger=digests")
    assert made.returncode == 0, made.stdout + made.stderr
    assert functions(server) == {"audit", "hashing", "verify"}
    assert (outputs(server)["Level"], outputs(server)["LedgerTable"]) == ("fixity", "digests")
    assert client(server, "dynamodb").list_tables()["TableNames"] == ["digests"]

    folder = tmp_path / "second"
    said = refusal(folder, *arguments(), command="deploy", plugin="level.js", AWS_ENDPOINT_URL=server, **KEYS)
    assert REFUSED in " ".join(said.split())
    assert "level.js:" not in said, "a stack trace helps nobody who forgot a parameter"
    assert functions(server) == {"audit", "hashing", "verify"}

    lowered = deploy(server, tmp_path / "third", "level=metadata")
    assert lowered.returncode == 0, lowered.stdout + lowered.stderr
    assert functions(server) == {"audit"}
    assert client(server, "dynamodb").list_tables()["TableNames"] == ["digests"]

    again = deploy(server, tmp_path / "fourth")
    assert again.returncode == 0, again.stdout + again.stderr
