"""The template for those without Node: whole, and free of what only osls would bring."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deploy.limits import INLINE
from deploy.template import main, plain
from tests.system.deploy.checks.packaged import needs_osls, of_level
from tests.system.deploy.checks.sources import LEVELS

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
