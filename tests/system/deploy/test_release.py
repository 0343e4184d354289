"""What a release has beside the packages: templates that take the buckets, a bill of materials; and the CI's file."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from deploy.build import NEWEST
from deploy.install import locked
from deploy.limits import exceeded
from deploy.resolving import Stack
from deploy.template import PLACEHOLDER, main, plain, with_buckets
from tests.support.paths import ROOT
from tests.system.deploy.checks.packaged import needs_osls, template
from tests.system.deploy.checks.sources import LEVELS

pytestmark = needs_osls

PARTITIONS = {"aws": "eu-west-1", "aws-cn": "cn-north-1", "aws-us-gov": "us-gov-west-1"}


def packaged(level: str, buckets: str) -> dict[str, Any]:
    return template(f"buckets={buckets}", f"level={level}", "bucketAlarms=false")


def resolved(made: dict[str, Any], partition: str, **parameters: str) -> dict[str, Any]:
    code = {"CodeBucket": "code", "CodeKey": "key.zip"}
    return Stack(made, partition, PARTITIONS[partition], code | parameters).resources()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("buckets", ["photos", "photos,archive,a.b-c"])
def test_buckets_as_a_parameter_come_to_the_same_as_buckets_in_the_template(level: str, buckets: str) -> None:
    made = with_buckets(plain(packaged(level, PLACEHOLDER)))
    for partition in PARTITIONS:
        found = resolved(made, partition, Buckets=buckets)
        # One bucket is a text or a list of one: IAM takes both, and so does EventBridge's name.
        assert found == resolved(plain(packaged(level, buckets)), partition), partition


@pytest.mark.parametrize("level", LEVELS)
def test_the_template_of_a_release_keeps_every_limit_and_names_no_bucket(level: str, tmp_path: Path) -> None:
    osls, written = tmp_path / "osls.json", tmp_path / "template.json"
    osls.write_text(json.dumps(packaged(level, PLACEHOLDER)))
    assert main(["--made", str(osls), "--output", str(written), "--buckets-parameter"]) == 0
    made = json.loads(written.read_text())
    assert made["Parameters"]["Buckets"]["Type"] == "CommaDelimitedList"
    assert "Default" not in made["Parameters"]["Buckets"]
    assert PLACEHOLDER not in written.read_text()
    made["Parameters"]["Buckets"]["Default"] = "photos"
    made["Parameters"] |= {name: {**made["Parameters"][name], "Default": "code"} for name in ("CodeBucket", "CodeKey")}
    assert list(exceeded(made)) == []


def test_a_template_of_other_buckets_takes_no_parameter() -> None:
    for buckets in ("photos", f"{PLACEHOLDER},photos", f"s3://{PLACEHOLDER}/prefix/"):
        with pytest.raises(ValueError, match="cannot take its buckets as a parameter"):
            with_buckets(plain(packaged("fixity", buckets)))


def test_the_bill_of_materials_has_each_package_of_the_functions(tmp_path: Path) -> None:
    shown = subprocess.run(["make", "-n", "release"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (command,) = [line.partition(" > ") for line in shown.splitlines() if line.endswith("sbom.cdx.json")]
    made = json.loads(subprocess.run(shlex.split(command[0]), cwd=ROOT, capture_output=True, check=True).stdout)
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.5")
    found = {(one["name"], one["version"]) for one in made["components"]}
    requirements = (ROOT / locked("newest", NEWEST)).read_text()
    assert set(re.findall(r"^([a-z0-9-]+)==([^ ]+)", requirements, re.MULTILINE)) <= found
    assert {"awscrt", "boto3", "uvloop"} <= {name for name, _ in found}
