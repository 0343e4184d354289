"""One region for what osls deploys and what boto3 calls afterwards, wherever it is named."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from deploy.invoke import lambda_client
from deploy.region import region as found_by_boto3
from tests.support.paths import ROOT
from tests.system.deploy.checks.packaged import needs_osls, run

pytestmark = needs_osls

CONFIG = """
# not region = us-west-1
[default]
output = json
region = eu-west-1
s3 =
    region = us-west-2

[profile work]
region=ap-south-1
[profile "at home"]
Region = eu-north-1
[profile silent]
output = text
"""
CREDENTIALS = """
[both]
region = sa-east-1
[work]
aws_access_key_id = none
"""
CASES = {
    "named twice": ({"AWS_REGION": "eu-west-3", "AWS_DEFAULT_REGION": "us-west-1"}, "eu-west-3"),
    "named for boto3": ({"AWS_DEFAULT_REGION": "eu-west-2"}, "eu-west-2"),
    "named by an empty variable": ({"AWS_REGION": "", "AWS_DEFAULT_REGION": "eu-west-2"}, "eu-west-2"),
    "named beside a profile": ({"AWS_REGION": "eu-west-3", "AWS_PROFILE": "work"}, "eu-west-3"),
    "the default profile's": ({}, "eu-west-1"),
    "a profile's": ({"AWS_PROFILE": "work"}, "ap-south-1"),
    "a profile's with a blank": ({"AWS_PROFILE": "at home"}, "eu-north-1"),
    "a profile's by the old variable": ({"AWS_DEFAULT_PROFILE": "work"}, "ap-south-1"),
    "of two profiles": ({"AWS_PROFILE": "work", "AWS_DEFAULT_PROFILE": "at home"}, "ap-south-1"),
    "a profile's among credentials": ({"AWS_PROFILE": "both"}, "sa-east-1"),
    "a profile's that has none": ({"AWS_PROFILE": "silent"}, "us-east-1"),
    "a profile's that is not there": ({"AWS_PROFILE": "missing"}, "us-east-1"),
}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Variables that name a user's files."""
    found = {"AWS_CONFIG_FILE": CONFIG, "AWS_SHARED_CREDENTIALS_FILE": CREDENTIALS}
    for name, text in found.items():
        (tmp_path / name).write_text(text)
    return {name: str(tmp_path / name) for name in found}


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch, files: dict[str, str]) -> pytest.MonkeyPatch:
    """An environment that names no region but by the user's files."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in files.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def of_osls() -> str:
    """What serverless.yml asks, in this environment."""
    script = "console.log(require(process.argv[1])({ options: {} }))"
    command = ["node", "-e", script, str(ROOT / "deploy" / "region.js")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_both_find_the_same_region(only: pytest.MonkeyPatch) -> None:
    failures = []
    for case, (environ, region) in CASES.items():
        with only.context() as set_here:
            for name, value in environ.items():
                set_here.setenv(name, value)
            found = found_by_boto3(), of_osls()
            if set(found) != {region}:
                failures.append((case, found))
    assert not failures
    only.setenv("AWS_PROFILE", "work")
    assert lambda_client().meta.region_name == "ap-south-1", "a deployed function is invoked there"


def test_osls_deploys_there(tmp_path: Path, files: dict[str, str]) -> None:
    arguments = ["--stage", "prod", "--param", "buckets=photos"]
    done = run(tmp_path / "service", arguments, command="print", AWS_PROFILE="work", **files)
    assert "\n  region: ap-south-1\n" in done.stdout, done.stdout + done.stderr


def test_make_refuses_parameters_that_would_reach_osls_alone() -> None:
    for given in ("--region eu-west-1", "--region=eu-west-1", "-r eu-west-1", "--aws-profile work"):
        command = ["make", "--dry-run", "help", f"PARAMS={given}"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode != 0, given
        assert "give REGION=.. or AWS_PROFILE=.. instead" in done.stderr


def test_make_takes_a_region_for_both() -> None:
    """The variables that its commands see."""
    script = "include Makefile\nshown:\n\t@echo $$AWS_REGION $$AWS_DEFAULT_REGION\n"
    environ = {**os.environ, "AWS_REGION": "us-west-1", "AWS_DEFAULT_REGION": "us-west-2"}
    for given, expected in (["REGION=eu-west-3"], "eu-west-3 eu-west-3"), ([], "us-west-1 us-west-1"):
        done = subprocess.run(
            ["make", "--silent", "--file", "-", "shown", *given],
            cwd=ROOT,
            env=environ,
            input=script,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == expected
