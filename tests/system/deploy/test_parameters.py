"""Parameters that are missing, unknown or wrong: refused in a sentence, before anything is made."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.system.deploy.checks.checked import checked, resolved
from tests.system.deploy.checks.packaged import given, needs_osls, refusal

pytestmark = needs_osls
VPC: Final = "subnets=subnet-1,subnet-2 securityGroups=sg-1"
POINT: Final = "arn:aws:elasticfilesystem:us-east-1:123456789012:access-point/fsap-0a1b2c3d4e5f67890"
MOUNTED: Final = f"{VPC} fileSystem={POINT}"

REFUSED: Final = {
    "buckets=": "the parameter buckets is missing",
    "buckets=Not_A_Bucket": "which is not a bucket",
    "buckets=@none.txt": "names the file 'none.txt', which cannot be read (ENOENT): check its path",
    "buckets=*,photos": "* is every bucket of the account, leave the others away",
    "buckets=* level=fixity": "whose notifications need names",
    "buckets=* bucketAccount=111122223333": "leave bucketAccount away",
    "buckets=* renew=true": "the rules of its events need names",
    "buckets=photos,archive roleBuckets=pho*": "no pattern for the bucket archive: add one",
    "roleBuckets=ph.tos": "no pattern for the bucket photos",
    "roleBuckets=Photos*": "roleBuckets names 'Photos*': give bucket names with *",
    "level=deep": "give exposure or metadata or fixity",
    "shedule=rate": "there is no parameter 'shedule'",
    "hashingTimeout=1801": "give a whole number from 10 to 1800",
    "keyPolicies=yes": "give true or false",
    "keyPolicies=true level=exposure": "give level=metadata or level=fixity",
    "inventory=reports/night": "give the destination of the reports, s3://BUCKET/PREFIX",
    "inventory=s3://reports/*": "with letters, digits and",
    "inventoryKey=arn:aws:kms:eu-west-1:123456789012:key/1": "is given without inventory",
    "inventory=s3://reports inventoryKey=alias/x": "give the ARN of a KMS key",
    "inventory=s3://reports parquet=yes": "give true or false",
    "parquet=true auditMemory=767": "in Parquet take more: give 768 or more",
    "inventory=s3://reports auditMemory=511": "S3 Inventory take more: give 512 or more",
    "verifyMaxAge=90": "give a time like 90d",
    "verifyPercent=101": "give a percentage",
    "verifySilentHours=169": "give a whole number from 0 to 168",
    "bucketAlarms=yes": "give true or false",
    "architecture=riscv": "give arm64 or x86_64",
    "logLevel=LOUD": "give DEBUG or INFO or WARNING or ERROR",
    "chatTopic=alerts": "give the ARN of an SNS topic, and another one than topic",
    "eventBus=default": "give the ARN of an event bus",
    "engine=aioboto3": "which the functions do not have: give engines=all too",
    "engines=direct": "give default or all",
    "runtime=python3.12": "give python3.13 or python3.14",
    "ledger=dynamodb:digests": "give the name or the ARN of a DynamoDB table",
    "renew=yes": "give true or false",
    "renew=true renewRate=2000": "give less than maxRate, 2000",
    "mapConcurrency=1001": "give auto, or a whole number from 1 to 1000",
    "mapConcurrency=many": "give auto, or a whole number from 1 to 1000",
    "kmsKey=alias/ours": "the parameter kmsKey has 'alias/ours': give the ARN of a KMS key",
    "kmsKey=arn:aws:kms:eu-west-1:123456789012:key/1": "give a key of the stack's region, us-east-1",
    "auditedKeys=1234": "the parameter auditedKeys has '1234': give the ARN of a KMS key",
    "tags=team": "tags has 'team': give name=value",
    "tags==x": "give name=value",
    "tags=service=mine": "and not the name service",
    "tags=aws:x=y": "is not an AWS tag",
    "tags=a=<b>": "is not an AWS tag",
    "deploymentBucket=s3://ours": "deploymentBucket is 's3://ours': give the name of a bucket",
    "serviceRole=ours": "serviceRole is 'ours': give the ARN of a role",
    f"{VPC} fileSystem=fs-1": "give the ARN of an EFS access point of the stack's region",
    f"{VPC} fileSystem={POINT.replace('us-east-1', 'eu-west-1')}": "of the stack's region, us-east-1",
    f"fileSystem={POINT}": "give subnets and securityGroups too",
    "out=/mnt/reports": "give fileSystem too",
    f"{MOUNTED} out=/mnt/elsewhere": "give a directory on the file system",
    f"{MOUNTED} out=/mnt/reports/../x": "give a directory on the file system",
    f"{MOUNTED} out=s3://reports": "give a directory on the file system",
}
"""By the parameters, which are given beside a bucket: what the sentence says."""


def test_a_wrong_parameter_is_refused_in_a_sentence() -> None:
    found = checked(*(["buckets=photos", *case.split()] for case in REFUSED))
    failures = {case: said for case, said in zip(REFUSED, found, strict=True) if REFUSED[case] not in str(said)}
    assert not failures
    assert all(isinstance(said, str) for said in found)


@pytest.mark.parametrize("case", ["", "buckets=photos level=deep", "buckets=photos shedule=rate"])
def test_osls_says_that_sentence_alone(tmp_path: Path, case: str) -> None:
    said = refusal(tmp_path, "--stage", "prod", *given(*case.split()))
    assert REFUSED[case.removeprefix("buckets=photos ") or "buckets="] in said
    assert "parameters.js:" not in said, "a stack trace helps nobody who mistyped"


def test_dependencies_are_bundled_unless_a_layer_is_asked_for() -> None:
    bundled, layered = resolved(), resolved(dependencies="layer")
    assert (bundled["layers"], bundled["layersOfFunctions"], bundled["layersOfAudit"]) == ({}, [], [])
    assert layered["layersOfFunctions"] == layered["layersOfAudit"] == [{"Ref": "DependenciesLambdaLayer"}]
    assert layered["layers"].keys() == {"dependencies"}
    layer = layered["layers"]["dependencies"]
    assert layer["name"] == "s3-auditor-prod-dependencies"
    assert layer["package"] == {"artifact": ".build/function-arm64-layer.zip"}
    assert layered["artifact"] == ".build/function-arm64.zip"


def test_duckdb_is_a_layer_of_the_audit_alone() -> None:
    for dependencies in ("bundled", "layer"):
        found = resolved(dependencies=dependencies, parquet="true", inventory="s3://reports", architecture="x86_64")
        assert {"Ref": "ParquetLambdaLayer"} in found["layersOfAudit"]
        others = [one for one in found["layersOfAudit"] if one != {"Ref": "ParquetLambdaLayer"}]
        assert others == found["layersOfFunctions"] == resolved(dependencies=dependencies)["layersOfFunctions"]
        layer = found["layers"]["parquet"]
        assert layer["package"] == {"artifact": ".build/parquet-x86_64.zip"}
        assert (layer["compatibleArchitectures"], layer["compatibleRuntimes"]) == (["x86_64"], ["python3.13"])


def test_with_too_little_memory_the_template_takes_no_inventory_later() -> None:
    for memory, takes in (("511", False), ("512", True)):
        pattern = re.compile(resolved(auditMemory=memory)["inventoryPattern"])
        assert pattern.fullmatch("")
        assert bool(pattern.fullmatch("my-reports")) == takes


def test_the_function_reads_a_configuration_under_one_name_whatever_it_is_called() -> None:
    found = resolved(config="../elsewhere/ours.toml")
    assert (resolved()["configFile"], found["configFile"]) == ("", "auditor.toml")
