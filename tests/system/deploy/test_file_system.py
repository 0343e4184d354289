"""A shared file system: mounted by the functions that write reports, through its access point and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auditor.config.layers import environment_layer, resolve
from deploy.deployer import FILES, main
from tests.support.paths import ROOT
from tests.system.deploy.checks.packaged import needs_osls, of_level, stack_of, statements
from tests.system.deploy.checks.sources import LEVELS, as_list, of_type
from tests.system.deploy.test_parameters import MOUNTED, POINT

pytestmark = needs_osls

ON_FILES = (*MOUNTED.split(), "out=/mnt/reports/audits")


@pytest.mark.parametrize("level", LEVELS)
def test_the_functions_that_write_reports_mount_the_access_point_and_have_no_rights_on_a_bucket(level: str) -> None:
    stack = stack_of(level, *ON_FILES)
    resources = stack.resources()
    functions = of_type(resources, "AWS::Lambda::Function")
    mounted = {name for name, one in functions.items() if "FileSystemConfigs" in one}
    assert mounted == {"AuditLambdaFunction", "VerifyLambdaFunction"} & functions.keys()
    for name in mounted:
        assert functions[name]["FileSystemConfigs"] == [{"Arn": POINT, "LocalMountPath": "/mnt/reports"}]
        assert functions[name]["VpcConfig"]["SubnetIds"] == ["subnet-1", "subnet-2"]
        settings = resolve([environment_layer(functions[name]["Environment"]["Variables"])])
        assert settings.out == "/mnt/reports/audits"
        files = statements(resources, name.replace("LambdaFunction", "Role"))["Files"]
        assert files["Condition"] == {"StringEquals": {"elasticfilesystem:AccessPointArn": POINT}}
    for role in of_type(resources, "AWS::IAM::Role"):
        for one in statements(resources, role).values():
            if one["Effect"] == "Allow":
                assert "audits/" not in json.dumps(as_list(one["Resource"])), one["Sid"]
    assert stack.resolve(stack.template["Outputs"]["Reports"]["Value"]) == "/mnt/reports/audits"


def test_a_mounted_file_system_leaves_the_run_folders_in_the_bucket_until_out_names_it() -> None:
    resources = stack_of("metadata", *MOUNTED.split()).resources()
    function = resources["AuditLambdaFunction"]["Properties"]
    assert function["FileSystemConfigs"]
    assert function["Environment"]["Variables"]["AUDITOR_OUT"].startswith("s3://")
    assert {"Reports", "ReportsList", "Files"} <= statements(resources, "AuditRole").keys()


def test_without_a_file_system_nothing_speaks_of_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    resources = json.dumps(stack_of("fixity").resources())
    assert "elasticfilesystem" not in resources
    assert "FileSystemConfigs" not in resources
    made = tmp_path / "template.json"
    for parameters, asked in (((), False), (MOUNTED.split(), True)):
        made.write_text(json.dumps(of_level("metadata", *parameters)))
        assert main(["--made", str(made)]) == 0
        assert (FILES in capsys.readouterr().out) == asked, "the deployer's policy lets Lambda look for mount targets"


def test_the_page_names_each_endpoint_that_the_functions_in_the_vpc_need() -> None:
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    section = page.partition("## A shared file system")[2].partition("\n## ")[0]
    names = ("S3", "STS", "Step Functions", "SNS", "SQS", "DynamoDB", "KMS", "EventBridge", "2049")
    assert [name for name in names if name not in section] == []
