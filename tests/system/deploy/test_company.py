"""What a company asks of a deployment: tags, its bucket and role for deploying, kept ledgers, and a careful removal."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from deploy.deployer import ACTIONS, main, policy
from deploy.resolving import Stack
from tests.support.paths import ROOT
from tests.system.deploy.checks.packaged import needs_osls, of_level, refusal, run
from tests.system.deploy.checks.sources import LEVELS, of_type
from tests.system.deploy.test_parameters import resolved

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


@needs_osls
def test_tags_are_on_all_that_takes_them() -> None:
    made = of_level("fixity", "--param", "tags=team=archive, cost = 4 2")
    expected = {"service": "s3-auditor-prod", "team": "archive", "cost": "4 2"}
    for name, one in of_type(made["Resources"], "AWS::Lambda::Function").items():
        assert {tag["Key"]: tag["Value"] for tag in one["Tags"]} == expected, name
    assert resolved(tags="team=archive, cost = 4 2")["tags"] == expected


@needs_osls
@pytest.mark.parametrize(
    ("given", "word"),
    [
        ("tags=team", "tags has 'team': give name=value"),
        ("tags==x", "give name=value"),
        ("tags=service=mine", "and not the name service"),
        ("tags=aws:x=y", "is not an AWS tag"),
        ("tags=a=<b>", "is not an AWS tag"),
        ("deploymentBucket=s3://ours", "deploymentBucket is 's3://ours': give the name of a bucket"),
        ("serviceRole=ours", "serviceRole is 'ours': give the ARN of a role"),
        ("verifySilentHours=169", "give a whole number from 0 to 168"),
        ("bucketAlarms=yes", "give true or false"),
    ],
)
def test_a_wrong_wish_is_refused_in_a_sentence(tmp_path: Path, given: str, word: str) -> None:
    assert word in refusal(tmp_path, "--stage", "prod", "--param", "buckets=photos", "--param", given)


@needs_osls
def test_a_named_bucket_and_a_service_role_are_used(tmp_path: Path) -> None:
    role = "arn:aws:iam::123456789012:role/deployer"
    parameters = ("buckets=photos", "deploymentBucket=packages-of-ours", f"serviceRole={role}")
    done = run(tmp_path, ["--stage", "prod", *(part for one in parameters for part in ("--param", one))])
    assert done.returncode == 0, done.stdout + done.stderr
    state = json.loads((tmp_path / ".serverless" / "serverless-state.json").read_text())
    assert state["service"]["provider"]["iam"]["deploymentRole"] == role
    made = (tmp_path / ".serverless" / "cloudformation-template-update-stack.json").read_text()
    assert "packages-of-ours" in made
    assert 'ServerlessDeploymentBucket"' not in json.dumps(list(json.loads(made)["Resources"]))


@needs_osls
def test_nobody_deletes_the_ledger_by_mistake() -> None:
    (ledger,) = of_type(Stack(of_level("fixity")).resources(), "AWS::DynamoDB::Table").values()
    assert ledger["DeletionProtectionEnabled"] is True


@needs_osls
def test_an_event_that_cannot_be_delivered_is_kept() -> None:
    stack = Stack(of_level("fixity"))
    resources = stack.resources()
    (target,) = resources["ObjectEventsRule"]["Properties"]["Targets"]
    assert target["DeadLetterConfig"] == {"Arn": stack.arn_of("DeadLetterQueue")}
    statements = resources["DeadLetterQueuePolicy"]["Properties"]["PolicyDocument"]["Statement"]
    (allowed,) = [one for one in statements if one["Effect"] == "Allow"]
    assert (allowed["Principal"], allowed["Action"]) == ({"Service": "events.amazonaws.com"}, "sqs:SendMessage")
    assert allowed["Condition"]["ArnEquals"] == {"aws:SourceArn": [stack.arn_of("ObjectEventsRule")]}


@needs_osls
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
    for one in statements:
        of_one = ("cloudformation:ValidateTemplate", *(f"lambda:{name}" for name in mappings()))
        assert "s3-auditor-trial" in one["Resource"] or set(one["Action"]) <= set(of_one)


def mappings() -> list[str]:
    return ACTIONS["AWS::Lambda::EventSourceMapping"][2].split()


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
        ((), "", "name the stage to remove: make remove STAGE=prod"),
        (("STAGE=prod",), "", "nothing was removed"),
        (("STAGE=prod",), "yes\n", "nothing was removed"),
        (("STAGE=prod", "CONFIRM=trial"), "trial\n", "nothing was removed"),
    ],
)
def test_removing_asks_and_has_no_default(tmp_path: Path, given: tuple[str, ...], answer: str, said: str) -> None:
    command, called = removal(tmp_path, given)
    done = subprocess.run(command, cwd=ROOT, input=answer, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert said in done.stderr
    assert not called.exists()


@pytest.mark.parametrize(
    ("given", "answer"), [(("STAGE=prod",), "prod\n"), (("STAGE=prod", "CONFIRM=prod"), ""), (("STAGE=local",), "")]
)
def test_removing_what_is_named_twice(tmp_path: Path, given: tuple[str, ...], answer: str) -> None:
    command, called = removal(tmp_path, given)
    subprocess.run(command, cwd=ROOT, input=answer, capture_output=True, text=True, check=True)
    assert called.read_text().split()[:3] == ["remove", "--stage", given[0].partition("=")[2]]


def removal(folder: Path, given: tuple[str, ...]) -> tuple[list[str], Path]:
    """make's command with a serverless that only notes how it was called, and the file with its note."""
    called, serverless = folder / "called", folder / "serverless"
    serverless.write_text(f'#!/bin/sh\necho "$@" > {called}\n')
    serverless.chmod(0o755)
    up_to_date = ["-o", "node_modules/.installed", "-o", "install"]
    return ["make", *up_to_date, "remove", f"SLS={serverless}", *given], called
