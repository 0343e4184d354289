"""What a company asks of a deployment: tags, its bucket and role for deploying, kept ledgers, and a careful removal."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from deploy.deployer import ACTIONS, main, policy
from tests.support.paths import ROOT
from tests.system.deploy.checks.checked import resolved
from tests.system.deploy.checks.packaged import needs_osls, of_level
from tests.system.deploy.checks.sources import LEVELS, of_type

pytestmark = needs_osls

OTHERWISE_NAMED = {
    "iam:PassRole",
    "s3:DeleteObjectVersion",
    "s3:GetBucketPublicAccessBlock",
    "s3:GetEncryptionConfiguration",
    "s3:GetLifecycleConfiguration",
    "s3:ListBucket",
    "s3:ListBucketVersions",
    "s3:PutBucketPublicAccessBlock",
    "s3:PutEncryptionConfiguration",
    "s3:PutLifecycleConfiguration",
}
"""Actions whose calls have another name (Service Authorization Reference)."""


MODELS = {"elasticfilesystem": "efs", "states": "stepfunctions"}
"""The SDK's names of services that IAM calls otherwise."""


def test_tags_are_on_all_that_takes_them() -> None:
    made = of_level("fixity", "tags=team=archive, cost = 4 2")
    expected = {"service": "s3-auditor-prod", "team": "archive", "cost": "4 2"}
    for name, one in of_type(made["Resources"], "AWS::Lambda::Function").items():
        assert {tag["Key"]: tag["Value"] for tag in one["Tags"]} == expected, name
    assert resolved(tags="team=archive, cost = 4 2")["tags"] == expected


@pytest.mark.parametrize("level", LEVELS)
def test_the_deployers_policy_knows_every_resource_of_the_template(
    level: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "template.json"
    made.write_text(json.dumps(of_level(level)))
    assert main(["--stage", "trial", "--made", str(made)]) == 0
    statements: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["Statement"]
    allowed = {action for one in statements for action in one["Action"]}
    assert ("dynamodb:CreateTable" in allowed) == (level == "fixity")
    assert not [action for action in allowed if "*" in action]
    mappings = ACTIONS["AWS::Lambda::EventSourceMapping"][2].split()
    for one in statements:
        of_one = ("cloudformation:ValidateTemplate", *(f"lambda:{name}" for name in mappings))
        assert "s3-auditor-trial" in one["Resource"] or set(one["Action"]) <= set(of_one)


def test_the_deployers_actions_exist() -> None:
    session = botocore.session.Session()
    for one in policy(ACTIONS, "s3-auditor-prod", "arn:aws:kms:eu-west-1:123456789012:key/1")["Statement"]:
        for action in set(one["Action"]) - OTHERWISE_NAMED:
            service, _, name = action.partition(":")
            model = session.get_service_model(MODELS.get(service, service))
            assert name in model.operation_names, action


def test_the_deployer_cannot_delete_the_ledger() -> None:
    assert "dynamodb:DeleteTable" not in json.dumps(policy(ACTIONS, "s3-auditor-prod"))


@pytest.mark.parametrize(
    ("given", "answer", "said"),
    [
        ("", "", "name the stage to remove: make remove STAGE=prod"),
        ("STAGE=prod", "", "nothing was removed"),
        ("STAGE=prod", "yes\n", "nothing was removed"),
        ("STAGE=prod CONFIRM=trial", "trial\n", "nothing was removed"),
        ("STAGE=prod", "prod\n", None),
        ("STAGE=prod CONFIRM=prod", "", None),
        ("STAGE=local", "", None),
    ],
)
def test_removing_asks_and_has_no_default(tmp_path: Path, given: str, answer: str, said: str | None) -> None:
    """With a serverless that only notes how it was called."""
    called, serverless = tmp_path / "called", tmp_path / "serverless"
    serverless.write_text(f'#!/bin/sh\necho "$@" > {called}\n')
    serverless.chmod(0o755)
    up_to_date = ["-o", "node_modules/.installed", "-o", "install"]
    command = ["make", *up_to_date, "remove", f"SLS={serverless}", *given.split()]
    done = subprocess.run(command, cwd=ROOT, input=answer, capture_output=True, text=True, check=False)
    if said is None:
        assert called.read_text().split()[:3] == ["remove", "--stage", given.split()[0].partition("=")[2]]
    else:
        assert done.returncode != 0
        assert said in done.stderr
        assert not called.exists()
