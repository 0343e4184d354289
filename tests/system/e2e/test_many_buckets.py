"""Five hundred buckets, deployed to a local AWS at each level: the functions know all of them."""

from __future__ import annotations

import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.deploy.checks.sources import LEVELS
from tests.system.e2e.conftest import _server_command
from tests.system.e2e.deployment import SERVICE, Deployment, serving

NAMES = [f"company-data-{number:04}-of-the-archive" for number in range(500)]
FUNCTIONS = {"exposure": {"audit"}, "metadata": {"audit"}, "fixity": {"audit", "hashing", "verify"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A server and sources of its own, for a session has one stack of this name."""
    command = _server_command()
    if command is None:
        pytest.skip("moto's server is not installed: set MOTO_SERVER to the moto_server of requirements-deploy.txt")
    folder = tmp_path_factory.mktemp("many")
    with serving(command, folder / "server.log") as url:
        yield Deployment(url, folder)


@pytest.mark.parametrize("level", LEVELS)
def test_five_hundred_buckets_deploy_at_each_level(server: Deployment, tmp_path: Path, level: str) -> None:
    file = tmp_path / "buckets.txt"
    file.write_text("\n".join(NAMES))
    more = (f"buckets=@{file}", f"level={level}", "roleBuckets=company-data-*", "bucketAlarms=false")
    given = [part for one in more for part in ("--param", one)]
    server.osls("deploy", *given)
    names = {f"{SERVICE}-{name}" for name in FUNCTIONS[level]}
    assert {one["FunctionName"] for one in server.client("lambda").list_functions()["Functions"]} == names
    for name in names:
        with zipfile.ZipFile(server.uploaded(name)) as archive:
            assert tomllib.loads(archive.read("auditor.toml").decode())["buckets"] == NAMES
    if level == "fixity":
        rules = server.client("events").list_rules()["Rules"]
        assert len([one for one in rules if "-object-events" in one["Name"]]) > 5
