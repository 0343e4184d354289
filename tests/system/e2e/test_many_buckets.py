"""Five hundred buckets, and buckets and a key as a stack's parameters, deployed to a local AWS."""

from __future__ import annotations

import io
import json
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.template import PLACEHOLDER, plain, with_buckets
from tests.system.deploy.checks.packaged import template
from tests.system.deploy.checks.sources import LEVELS
from tests.system.e2e.conftest import server_command
from tests.system.e2e.deployment import SERVICE, Deployment, serving

NAMES = [f"company-data-{number:04}-of-the-archive" for number in range(500)]
FUNCTIONS = {"exposure": {"audit"}, "metadata": {"audit"}, "fixity": {"audit", "hashing", "verify"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A server and sources of its own, for a session has one stack of this name."""
    command = server_command()
    if command is None:
        pytest.skip("moto's server is not installed: make test-e2e installs it")
    folder = tmp_path_factory.mktemp("many")
    with serving(command, folder / "server.log") as url:
        yield Deployment(url, folder)


@pytest.mark.parametrize("level", LEVELS)
def test_five_hundred_buckets_deploy_at_each_level(server: Deployment, tmp_path: Path, level: str) -> None:
    file = tmp_path / "buckets.txt"
    file.write_text("\n".join(NAMES))
    more = (f"buckets=@{file}", f"level={level}", "roleBuckets=company-data-*", "bucketAlarms=false")
    given = [part for one in more for part in ("--param", one)]
    server.osls("deploy", *given)
    names = {f"{SERVICE}-{name}" for name in FUNCTIONS[level]}
    assert {one["FunctionName"] for one in server.client("lambda").list_functions()["Functions"]} == names
    for name in names:
        with zipfile.ZipFile(server.uploaded(name)) as archive:
            assert tomllib.loads(archive.read("auditor.toml").decode())["buckets"] == NAMES
    if level == "fixity":
        rules = server.client("events").list_rules()["Rules"]
        assert len([one for one in rules if "-object-events" in one["Name"]]) > 5


def test_the_template_of_a_release_takes_buckets_and_a_key_as_parameters(server: Deployment) -> None:
    given = ("level=fixity", "bucketAlarms=false", f"buckets={PLACEHOLDER}")
    made = with_buckets(plain(template("--stage", "prod", *(part for one in given for part in ("--param", one)))))
    server.client("s3").create_bucket(Bucket="code")
    with io.BytesIO() as package, zipfile.ZipFile(package, "w") as archive:
        archive.writestr("handlers/audit.py", "")
        archive.close()
        server.client("s3").put_object(Bucket="code", Key="function.zip", Body=package.getvalue())
    key = server.client("kms").create_key()["KeyMetadata"]["Arn"]
    parameters = {"Buckets": "photos,archive", "CodeBucket": "code", "CodeKey": "function.zip", "KmsKeyArn": key}
    server.client("cloudformation").create_stack(
        StackName="release",
        TemplateBody=json.dumps(made),
        Capabilities=["CAPABILITY_IAM"],
        Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()],
    )
    function = server.client("lambda").get_function_configuration(FunctionName="s3-auditor-prod-verify")
    assert function["Environment"]["Variables"]["AUDITOR_BUCKETS"] == "photos,archive"
    role = function["Role"].rpartition("/")[2]
    policy = str(server.client("iam").get_role_policy(RoleName=role, PolicyName="verify")["PolicyDocument"])
    assert {"arn:aws:s3:::photos/*", "arn:aws:s3:::archive/*", key} <= set(policy.split("'"))
    queues = server.client("sqs").list_queues(QueueNamePrefix="s3-auditor-prod-")["QueueUrls"]
    asked = [server.client("sqs").get_queue_attributes(QueueUrl=one, AttributeNames=["All"]) for one in queues]
    assert [one["Attributes"]["KmsMasterKeyId"] for one in asked] == [key] * 4
