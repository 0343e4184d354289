"""What a release has beside the packages: templates that take the buckets, a bill of materials; and the CI's file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from deploy.limits import exceeded
from deploy.resolving import Stack
from deploy.sbom import bill
from deploy.template import PLACEHOLDER, main, plain, with_buckets
from tests.support.paths import ROOT
from tests.system.deploy.checks.packaged import needs_osls, template
from tests.system.deploy.checks.sources import LEVELS

PARTITIONS = {"aws": "eu-west-1", "aws-cn": "cn-north-1", "aws-us-gov": "us-gov-west-1"}


def packaged(level: str, buckets: str) -> dict[str, Any]:
    given = (f"buckets={buckets}", f"level={level}", "bucketAlarms=false")
    return plain(template("--stage", "prod", *(part for one in given for part in ("--param", one))))


def resolved(made: dict[str, Any], partition: str, **parameters: str) -> dict[str, Any]:
    code = {"CodeBucket": "code", "CodeKey": "key.zip"}
    return Stack(made, partition, PARTITIONS[partition], code | parameters).resources()


@needs_osls
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("buckets", ["photos", "photos,archive,a.b-c"])
def test_buckets_as_a_parameter_come_to_the_same_as_buckets_in_the_template(
    level: str, partition: str, buckets: str
) -> None:
    made = with_buckets(packaged(level, PLACEHOLDER))
    found = resolved(made, partition, Buckets=buckets)
    expected = resolved(packaged(level, buckets), partition)
    # One bucket is a text or a list of one: IAM takes both, and so does EventBridge's name.
    assert found == expected


@needs_osls
@pytest.mark.parametrize("level", LEVELS)
def test_the_template_of_a_release_keeps_every_limit_and_names_no_bucket(level: str, tmp_path: Path) -> None:
    osls, written = tmp_path / "osls.json", tmp_path / "template.json"
    given = (f"buckets={PLACEHOLDER}", f"level={level}", "bucketAlarms=false")
    osls.write_text(json.dumps(template("--stage", "prod", *(part for one in given for part in ("--param", one)))))
    assert main(["--made", str(osls), "--output", str(written), "--buckets-parameter"]) == 0
    made = json.loads(written.read_text())
    assert made["Parameters"]["Buckets"]["Type"] == "CommaDelimitedList"
    assert "Default" not in made["Parameters"]["Buckets"]
    assert PLACEHOLDER not in written.read_text()
    made["Parameters"]["Buckets"]["Default"] = "photos"
    made["Parameters"] |= {name: {**made["Parameters"][name], "Default": "code"} for name in ("CodeBucket", "CodeKey")}
    assert list(exceeded(made)) == []


@needs_osls
def test_a_template_of_other_buckets_takes_no_parameter() -> None:
    for buckets in ("photos", f"{PLACEHOLDER},photos", f"s3://{PLACEHOLDER}/prefix/"):
        with pytest.raises(ValueError, match="cannot take its buckets as a parameter"):
            with_buckets(packaged("fixity", buckets))


LOCK = """\
aiohttp==3.14.5 \\
    --hash=sha256:00
Zope_Thing==1.0 ; python_full_version < '3.12' \\
    --hash=sha256:01
pywin32==312 ; sys_platform == 'win32' \\
    --hash=sha256:02
uvloop==0.22.1 ; sys_platform != 'win32' \\
    --hash=sha256:03
    # via s3-auditor
"""


def test_the_bill_names_what_the_lock_pins_and_is_the_same_for_the_same_lock() -> None:
    made = bill(LOCK)
    assert [(one["name"], one["version"]) for one in made["components"]] == [
        ("aiohttp", "3.14.5"),
        ("zope-thing", "1.0"),
        ("uvloop", "0.22.1"),
    ]
    assert [one["purl"] for one in made["components"]][1] == "pkg:pypi/zope-thing@1.0"
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.5")
    assert made["dependencies"][0]["dependsOn"] == [one["bom-ref"] for one in made["components"]]
    assert bill(LOCK) == made
    assert bill(LOCK.replace("3.14.5", "3.14.6"))["serialNumber"] != made["serialNumber"]


def test_the_bill_of_our_lock_has_every_package_of_it() -> None:
    done = subprocess.run([sys.executable, "-m", "deploy.sbom"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = {one["name"] for one in json.loads(done.stdout)["components"]}
    lock = (ROOT / "requirements.txt").read_text()
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lock.splitlines() if line[:1].isalnum()}
    assert names == pinned
    assert {"aioboto3", "awscrt", "uvloop"} <= names


def test_the_hosts_ci_runs_what_any_machine_runs() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert [step["run"] for step in steps if "run" in step] == [".ci/run"]
    assert workflow["permissions"] == {"contents": "read"}
