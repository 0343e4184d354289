"""Five hundred buckets, deployed to a local AWS."""

from __future__ import annotations

import tomllib
import zipfile
from pathlib import Path

from tests.system.deploy.checks.packaged import given
from tests.system.e2e.conftest import server_command
from tests.system.e2e.deployment import SERVICE, Deployment, serving

NAMES = [f"company-data-{number:04}-of-the-archive" for number in range(500)]


def test_five_hundred_buckets_are_deployed(tmp_path: Path) -> None:
    """To a server and from sources of its own, for a session has one stack of this name."""
    file = tmp_path / "buckets.txt"
    file.write_text("\n".join(NAMES))
    with serving(server_command(), tmp_path / "server.log") as url:
        server = Deployment(url, tmp_path)
        more = (f"buckets=@{file}", "level=fixity", "roleBuckets=company-data-*", "bucketAlarms=false")
        server.osls("deploy", *given(*more))
        names = {f"{SERVICE}-{name}" for name in ("audit", "hashing", "verify")}
        assert {one["FunctionName"] for one in server.client("lambda").list_functions()["Functions"]} == names
        for name in names:
            with zipfile.ZipFile(server.uploaded(name)) as archive:
                assert tomllib.loads(archive.read("auditor.toml").decode())["buckets"] == NAMES
        rules = server.client("events").list_rules()["Rules"]
        assert len([one for one in rules if "-object-events" in one["Name"]]) > 5
