"""A shared file system: mounted by the functions that write reports, through its access point and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auditor.config.layers import environment_layer, resolve
from deploy.deployer import FILES, main
from deploy.resolving import Stack
from tests.support.paths import ROOT
from tests.system.deploy.checks.packaged import needs_osls, of_level, refusal
from tests.system.deploy.checks.sources import LEVELS, as_list, of_type

POINT = "arn:aws:elasticfilesystem:us-east-1:123456789012:access-point/fsap-0a1b2c3d4e5f67890"
VPC = ("subnets=subnet-1,subnet-2", "securityGroups=sg-1")
MOUNTED = (*VPC, f"fileSystem={POINT}")
ON_FILES = (*MOUNTED, "out=/mnt/reports/audits")
WRITERS = {"audit": "AuditLambdaFunction", "verify": "VerifyLambdaFunction"}


def given_as(*parameters: str) -> list[str]:
    return [part for one in parameters for part in ("--param", one)]


def stack_of(level: str, *parameters: str) -> Stack:
    return Stack(of_level(level, *given_as(*parameters)), region="us-east-1")


def statements(resources: dict[str, Any], role: str) -> dict[str, dict[str, Any]]:
    found = resources[role]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
    return {one["Sid"]: one for one in found}


@needs_osls
@pytest.mark.parametrize("level", LEVELS)
def test_the_functions_that_write_reports_mount_the_access_point(level: str) -> None:
    functions = of_type(stack_of(level, *ON_FILES).resources(), "AWS::Lambda::Function")
    mounted = {name for name, one in functions.items() if "FileSystemConfigs" in one}
    assert mounted == {name for name in WRITERS.values() if name in functions}
    for name in mounted:
        assert functions[name]["FileSystemConfigs"] == [{"Arn": POINT, "LocalMountPath": "/mnt/reports"}]
        assert functions[name]["VpcConfig"]["SubnetIds"] == ["subnet-1", "subnet-2"]
        settings = resolve([environment_layer(functions[name]["Environment"]["Variables"])])
        assert settings.out == "/mnt/reports/audits"


@needs_osls
@pytest.mark.parametrize("level", LEVELS)
def test_the_roles_mount_and_write_through_that_access_point_alone(level: str) -> None:
    resources = stack_of(level, *ON_FILES).resources()
    for role in {f"{name.title()}Role" for name in WRITERS} & resources.keys():
        files = statements(resources, role)["Files"]
        assert files["Action"] == ["elasticfilesystem:ClientMount", "elasticfilesystem:ClientWrite"]
        assert files["Resource"] == "arn:aws:elasticfilesystem:us-east-1:123456789012:file-system/*"
        assert files["Condition"] == {"StringEquals": {"elasticfilesystem:AccessPointArn": POINT}}
    if level == "fixity":
        assert "elasticfilesystem" not in json.dumps(resources["HashingRole"])


@needs_osls
@pytest.mark.parametrize("level", LEVELS)
def test_with_the_run_folders_on_files_no_role_has_rights_on_the_reports_bucket(level: str) -> None:
    stack = stack_of(level, *ON_FILES)
    resources = stack.resources()
    for role in of_type(resources, "AWS::IAM::Role"):
        for one in statements(resources, role).values():
            if one["Effect"] == "Allow":
                assert "audits/" not in json.dumps(as_list(one["Resource"])), one["Sid"]
    if level == "exposure":
        contents = statements(resources, "AuditRole")["NoContents"]
        assert (contents["Resource"], "NotResource" in contents) == ("*", False)
    assert stack.resolve(stack.template["Outputs"]["Reports"]["Value"]) == "/mnt/reports/audits"


@needs_osls
def test_a_mounted_file_system_leaves_the_run_folders_in_the_bucket_until_out_names_it() -> None:
    resources = stack_of("metadata", *MOUNTED).resources()
    function = resources["AuditLambdaFunction"]["Properties"]
    assert function["FileSystemConfigs"]
    assert function["Environment"]["Variables"]["AUDITOR_OUT"].startswith("s3://")
    assert {"Reports", "ReportsList", "Files"} <= statements(resources, "AuditRole").keys()


@needs_osls
def test_without_a_file_system_nothing_speaks_of_one() -> None:
    resources = Stack(of_level("fixity")).resources()
    assert "elasticfilesystem" not in json.dumps(resources)
    assert "FileSystemConfigs" not in json.dumps(resources)


@needs_osls
@pytest.mark.parametrize(
    ("given", "word"),
    [
        ((*VPC, "fileSystem=fs-1"), "give the ARN of an EFS access point of the stack's region"),
        ((*VPC, f"fileSystem={POINT.replace('us-east-1', 'eu-west-1')}"), "of the stack's region, us-east-1"),
        ((f"fileSystem={POINT}",), "give subnets and securityGroups too"),
        (("out=/mnt/reports",), "give fileSystem too"),
        ((*MOUNTED, "out=/mnt/elsewhere"), "give a directory on the file system"),
        ((*MOUNTED, "out=/mnt/reports/../x"), "give a directory on the file system"),
        ((*MOUNTED, "out=s3://reports"), "give a directory on the file system"),
    ],
)
def test_a_wrong_file_system_is_refused_in_a_sentence(tmp_path: Path, given: tuple[str, ...], word: str) -> None:
    said = refusal(tmp_path, "--stage", "prod", *given_as("buckets=photos", *given), AWS_REGION="us-east-1")
    assert word in said


@needs_osls
@pytest.mark.parametrize(("given", "asked"), [((), False), (MOUNTED, True)], ids=["none", "mounted"])
def test_the_deployers_policy_lets_lambda_look_for_mount_targets(
    given: tuple[str, ...], asked: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "template.json"
    made.write_text(json.dumps(stack_of("metadata", *given).template))
    assert main(["--made", str(made)]) == 0
    assert (FILES in capsys.readouterr().out) == asked


def test_the_page_names_each_endpoint_that_the_functions_in_the_vpc_need() -> None:
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    section = page.partition("## A shared file system")[2].partition("\n## ")[0]
    for name in ("S3", "STS", "Lambda", "SNS", "SQS", "DynamoDB", "KMS", "EventBridge", "2049"):
        assert name in section
