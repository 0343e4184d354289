"""The template for those without Node, whole and free of what only osls would bring; and what a release has beside it:
templates that take the buckets, and a bill of materials.
"""

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
from deploy.limits import INLINE, exceeded
from deploy.resolving import Stack
from deploy.template import PLACEHOLDER, main, plain, with_buckets
from tests.support.paths import ROOT
from tests.system.deploy.checks.packaged import needs_osls, of_level, template
from tests.system.deploy.checks.sources import LEVELS
from tests.system.deploy.test_template import PARTITIONS

pytestmark = needs_osls


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_of_osls_is_left_and_nothing_of_ours_is_lost(level: str) -> None:
    made = of_level(level)
    found = plain(made)
    assert "Serverless" not in json.dumps(found)
    lost = made["Resources"].keys() - found["Resources"].keys()
    assert lost == {"ServerlessDeploymentBucket", "ServerlessDeploymentBucketPolicy"}
    assert found["Parameters"].keys() - made["Parameters"].keys() == {"CodeBucket", "CodeKey"}
    assert made["Outputs"].keys() - found["Outputs"].keys() == {"ServerlessDeploymentBucketName"}


def test_the_same_sources_make_the_same_text(tmp_path: Path) -> None:
    made = tmp_path / "made.json"
    made.write_text(json.dumps(of_level("fixity")))
    one, other = tmp_path / "one.json", tmp_path / "folder" / "other.json"
    assert main(["--made", str(made), "--output", str(one)]) == 0
    earlier = json.dumps(of_level("fixity", "logDays=90"))  # packaged at another time
    made.write_text(earlier)
    assert main(["--made", str(made), "--output", str(other)]) == 0
    assert one.read_text() == other.read_text()
    assert json.loads(one.read_text()) == plain(json.loads(earlier))
    made.write_text(json.dumps(of_level("metadata")))
    assert main(["--made", str(made), "--output", str(one)]) == 0
    assert one.stat().st_size <= INLINE


def test_without_a_packaged_template_it_says_what_to_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--made", str(tmp_path / "none.json")]) == 1
    assert "run npx serverless package first" in capsys.readouterr().err


def with_resource(kind: str, name: str = "Only", **properties: Any) -> dict[str, Any]:
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Parameters": {},
        "Conditions": {},
        "Resources": {name: {"Type": kind, "Properties": properties}},
        "Outputs": {f"{name}S3Key": {"Value": "serverless/of/osls.zip"}},
    }


def test_a_layer_is_read_from_where_the_package_lies() -> None:
    for name, key in (("DependenciesLambdaLayer", "LayerKey"), ("ParquetLambdaLayer", "ParquetLayerKey")):
        content = {"S3Bucket": {"Ref": "ServerlessDeploymentBucket"}, "S3Key": "serverless/of/osls.zip"}
        found = plain(with_resource("AWS::Lambda::LayerVersion", name, Content=content))
        assert found["Resources"][name]["Properties"]["Content"]["S3Key"] == {"Ref": key}
        assert found["Parameters"].keys() == {"CodeBucket", "CodeKey", key}
        assert found["Outputs"] == {}


def test_a_bucket_of_osls_that_is_still_named_is_an_error() -> None:
    with pytest.raises(ValueError, match="still names"):
        plain(with_resource("AWS::SQS::Queue", QueueName={"Ref": "ServerlessDeploymentBucket"}))


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
