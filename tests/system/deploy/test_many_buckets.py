"""Hundreds of buckets: the template keeps every limit, or a sentence names the limit before anything is sent."""

from __future__ import annotations

import copy
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from auditor.config.file import load_settings
from deploy.config import config_files
from deploy.errors import BuildError
from deploy.limits import exceeded, main
from deploy.resolving import ACCOUNT, Stack
from tests.system.deploy.checks.checked import resolved
from tests.system.deploy.checks.packaged import given, needs_osls, refusal, statements, template
from tests.system.deploy.checks.sources import as_list, of_type

pytestmark = needs_osls
NAMES = [f"company-data-{number:04}-of-the-archive" for number in range(500)]
PATTERNS = ("roleBuckets=company-data-*", "bucketAlarms=false")


@cache
def many(level: str, *more: str, buckets: str = ",".join(NAMES)) -> dict[str, Any]:
    return template(f"buckets={buckets}", f"level={level}", *more)


def test_what_a_named_bucket_costs_is_said_with_the_figure_and_the_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "template.json"
    made.write_text(json.dumps(many("fixity")))
    assert main([str(made)]) == 1
    said = capsys.readouterr().err.splitlines()
    roles = [line for line in said if line.startswith("the role ")]
    assert [line.split()[2] for line in roles] == ["AuditRole", "HashingRole", "VerifyRole"]
    for line in roles:
        assert "characters of policy, and IAM takes 10,240: give --param roleBuckets=" in line
        assert int(line.split()[5].replace(",", "")) > 500 * 2 * len(NAMES[0])
    more = "1,0[0-9]+ resources, and CloudFormation takes 500: give --param bucketAlarms=false"
    assert [line for line in said if re.match(f"the template would have {more}", line)]
    assert [line for line in said if line.startswith("the queue policy NotificationQueuePolicy would have ")]


def test_roles_of_patterns_keep_every_limit_and_hold_in_the_account_of_the_buckets_alone() -> None:
    assert list(exceeded(many("fixity", *PATTERNS))) == []
    for values, account in (({}, ACCOUNT), ({"BucketAccount": "999988887777"}, "999988887777")):
        resources = Stack(many("fixity", *PATTERNS), parameters=values).resources()
        for role in ("AuditRole", "HashingRole", "VerifyRole"):
            bucket, objects = (statements(resources, role)[sid] for sid in ("Bucket", "Objects"))
            assert as_list(bucket["Resource"]) == ["arn:aws:s3:::company-data-*"]
            assert as_list(objects["Resource"]) == ["arn:aws:s3:::company-data-*/*"]
            for one in (bucket, objects):
                assert one["Condition"] == {"StringEquals": {"s3:ResourceAccount": account}}


def test_the_rules_pass_on_each_bucket_once() -> None:
    stack = Stack(
        many(
            "fixity",
            *PATTERNS,
            buckets=",".join([*NAMES, f"s3://company-data-other/{'p' * 200}/", "s3://company-data-other/q/"]),
        )
    )
    rules = {name: one for name, one in stack.resources().items() if one["Type"] == "AWS::Events::Rule"}
    passed: list[str] = []
    for one in of_type(rules, "AWS::Events::Rule").values():
        detail = one["EventPattern"]["detail"]
        for part in detail.get("$or", [detail]):
            prefixes = [key["prefix"] for key in part.get("object", {}).get("key", [])]
            passed += [f"{name}/{prefixes[0]}" if prefixes else name for name in part["bucket"]["name"]]
        (target,) = one["Targets"]
        assert target["Arn"] == stack.arn_of("NotificationQueue")
        assert target["RetryPolicy"]["MaximumEventAgeInSeconds"] == 86_400
    assert sorted(passed) == sorted([*NAMES, f"company-data-other/{'p' * 200}/", "company-data-other/q/"])
    policy = stack.resources()["NotificationQueuePolicy"]["Properties"]["PolicyDocument"]["Statement"]
    (ours,) = [one for one in policy if one["Sid"] == "TheRule"]
    assert ours["Condition"]["ArnEquals"]["aws:SourceArn"] == [stack.arn_of(name) for name in rules]
    assert list(exceeded(stack.template)) == []


def test_a_list_that_no_variable_holds_lies_in_the_package(tmp_path: Path) -> None:
    few, lots = resolved(), resolved(buckets=",".join(NAMES))
    assert (few["bucketsVariable"], few["packedBuckets"], few["configFile"]) == ("photos", [], "")
    assert (lots["bucketsVariable"], lots["packedBuckets"], lots["configFile"]) == ("", NAMES, "auditor.toml")
    listed = tmp_path / "buckets.txt"
    listed.write_text("# ours\nphotos\n\ns3://archive/2024/\r\nphotos\n")
    assert resolved(buckets=f"@{listed}")["bucketsVariable"] == "photos,s3://archive/2024/"
    (content,) = config_files(None, lots["packedBuckets"]).values()
    file = tmp_path / "auditor.toml"
    file.write_bytes(content)
    settings = load_settings(environ={"AUDITOR_CONFIG": str(file), "AUDITOR_BUCKETS": ""}, function="audit")
    assert list(settings.buckets) == NAMES


def test_a_packed_list_goes_before_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text('max_calls = 7\n[rules.M01]\nrequired = ["owner"]\n')
    packed = tmp_path / "auditor.toml"
    (content,) = config_files(file, ["a-bucket", 's3://b-bucket/"ü"/']).values()
    packed.write_bytes(content)
    settings = load_settings(environ={"AUDITOR_CONFIG": str(packed)}, function="audit")
    assert (settings.buckets, settings.max_calls) == (("a-bucket", 's3://b-bucket/"ü"/'), 7)
    file.write_text('buckets = ["another"]\n')
    with pytest.raises(BuildError, match="a function cannot have buckets"):
        config_files(file, NAMES)


def test_star_is_every_bucket_of_the_account() -> None:
    made = many("metadata", buckets="*")
    assert list(exceeded(made)) == []
    resources = Stack(made).resources()
    bucket, objects, account = (statements(resources, "AuditRole")[sid] for sid in ("Bucket", "Objects", "Account"))
    assert as_list(bucket["Resource"]) == ["arn:aws:s3:::*"]
    assert as_list(objects["Resource"]) == ["arn:aws:s3:::*/*"]
    assert objects["Condition"] == bucket["Condition"] == {"StringEquals": {"s3:ResourceAccount": ACCOUNT}}
    assert "s3:ListAllMyBuckets" in account["Action"]
    assert "sts:AssumeRole" not in json.dumps(resources["AuditRole"]["Properties"]["Policies"])
    variables = [one["Environment"]["Variables"] for one in of_type(resources, "AWS::Lambda::Function").values()]
    assert [one["AUDITOR_BUCKETS"] for one in variables if "AUDITOR_BUCKETS" in one] == ["*"]


MEASURED = {
    ("AWS::Lambda::Function", "Environment.Variables"): "bytes of variables, and Lambda takes 4,096",
    ("AWS::IAM::Role", "Policies.0.PolicyDocument"): "characters of policy, and IAM takes 10,240",
    ("AWS::Events::Rule", "EventPattern"): "characters of pattern, and EventBridge takes 2,048",
    ("AWS::SQS::QueuePolicy", "PolicyDocument"): "bytes, and SQS takes 8,192",
}


@pytest.mark.parametrize(("kind", "path"), MEASURED)
def test_each_resource_is_measured(kind: str, path: str) -> None:
    sentence = MEASURED[kind, path]
    limit = int(sentence.rpartition(" ")[2].replace(",", ""))
    made = copy.deepcopy(many("fixity", buckets="photos"))
    found: Any = next(one for one in made["Resources"].values() if one["Type"] == kind)["Properties"]
    for step in path.split("."):
        found = found[int(step)] if step.isdigit() else found[step]
    member = "Statement" if kind == "AWS::IAM::Role" else "More"
    found[member] = ["x" * (limit // 2)]
    assert not [one for one in exceeded(made) if sentence in one]
    found[member] = ["x" * limit]
    (said,) = exceeded(made)
    assert sentence in said


def test_the_template_and_its_parameters_are_measured() -> None:
    made = copy.deepcopy(many("fixity", buckets="photos"))
    made["Parameters"]["RolePath"]["Default"] = "x" * 4_097
    made["Description"] = "x" * 1_000_000
    made["Resources"] |= {f"More{number}": {"Type": "AWS::SNS::Topic"} for number in range(500)}
    said = list(exceeded(made))
    assert [one.partition(" would have ")[0] for one in said] == ["the template"] * 2 + ["the parameter RolePath"]
    assert "resources, and CloudFormation takes 500" in said[1]
    assert said[2].startswith("the parameter RolePath would have 4,097 bytes, and CloudFormation takes 4,096")


def test_the_hook_measures_before_anything_is_sent(tmp_path: Path) -> None:
    """A deployment to a server that does not listen: the refusal comes first."""
    said = refusal(
        tmp_path,
        *("--stage", "local", *given(f"buckets={','.join(NAMES)}")),
        command="deploy",
        plugin="package.js",
        AWS_ENDPOINT_URL="http://127.0.0.1:9",
        AWS_ACCESS_KEY_ID="testing",
        AWS_SECRET_ACCESS_KEY="testing",
        AWS_REGION="us-east-1",
    )
    assert "IAM takes 10,240" in said
    assert "nothing was sent: the reason is above" in said
