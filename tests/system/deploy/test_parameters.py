"""Parameters that are missing, unknown or wrong: refused in a sentence, before anything is made."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT
from tests.system.deploy.checks.packaged import needs_osls, refusal
from tests.system.deploy.checks.sources import parameters


@needs_osls
@pytest.mark.parametrize(
    ("given", "word"),
    [
        ([], "the parameter buckets is missing"),
        (["buckets=Not_A_Bucket"], "which is not a bucket"),
        (["buckets=photos", "level=deep"], "give exposure or metadata or fixity"),
        (["buckets=photos", "shedule=rate(1 day)"], "there is no parameter 'shedule'"),
        (["buckets=photos", "hashingTimeout=1801"], "give a whole number from 10 to 1800"),
        (["buckets=photos", "keyPolicies=yes"], "give true or false"),
        (["buckets=photos", "keyPolicies=true", "level=exposure"], "give level=metadata or level=fixity"),
        (["buckets=photos", "inventory=reports/night"], "give the destination of the reports, s3://BUCKET/PREFIX"),
        (["buckets=photos", "inventory=s3://reports/*"], "with letters, digits and"),
        (["buckets=photos", "inventoryKey=arn:aws:kms:eu-west-1:123456789012:key/1"], "is given without inventory"),
        (["buckets=photos", "inventory=s3://reports", "inventoryKey=alias/x"], "give the ARN of a KMS key"),
        (["buckets=photos", "inventory=s3://reports", "parquet=yes"], "give true or false"),
        (["buckets=photos", "parquet=true", "auditMemory=767"], "in Parquet take more: give 768 or more"),
        (["buckets=photos", "inventory=s3://reports", "auditMemory=511"], "S3 Inventory take more: give 512 or more"),
        (["buckets=photos", "verifyMaxAge=90"], "give a time like 90d"),
        (["buckets=photos", "verifyPercent=101"], "give a percentage"),
        (["buckets=photos", "architecture=riscv"], "give arm64 or x86_64"),
        (["buckets=photos", "logLevel=LOUD"], "give DEBUG or INFO or WARNING or ERROR"),
        (["buckets=photos", "chatTopic=alerts"], "give the ARN of an SNS topic, and another one than topic"),
        (["buckets=photos", "eventBus=default"], "give the ARN of an event bus"),
        (["buckets=photos", "engine=aioboto3"], "which the functions do not have: give engines=all too"),
        (["buckets=photos", "engines=direct"], "give default or all"),
        (["buckets=photos", "runtime=python3.12"], "give python3.13 or python3.14"),
        (["buckets=photos", "ledger=dynamodb:digests"], "give the name or the ARN of a DynamoDB table"),
    ],
    ids=lambda value: "" if isinstance(value, str) else (value[-1].split("=")[0] if value else "none"),
)
def test_a_wrong_parameter_is_refused_in_a_sentence(tmp_path: Path, given: list[str], word: str) -> None:
    arguments = [part for one in given for part in ("--param", one)]
    said = refusal(tmp_path, "--stage", "prod", *arguments)
    assert word in said
    assert "parameters.js:" not in said, "a stack trace helps nobody who mistyped"


RESOLVE = """
const given = JSON.parse(process.argv[2]);
const resolveVariable = async (name) => ({ 'self:service': 's3-auditor', 'sls:stage': 'prod', ...given })[name];
require(process.argv[1])({ options: {}, resolveVariable }).then((found) => console.log(JSON.stringify(found)));
"""


def resolved(**more: str) -> dict[str, Any]:
    given = {f"param:{name}": value for name, value in (parameters()["default"] | {"buckets": "photos"} | more).items()}
    command = ["node", "-e", RESOLVE, str(ROOT / "deploy" / "parameters.js"), json.dumps(given)]
    found: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


@needs_osls
def test_dependencies_are_bundled_unless_a_layer_is_asked_for() -> None:
    bundled, layered = resolved(), resolved(dependencies="layer")
    assert (bundled["layers"], bundled["layersOfFunctions"], bundled["layersOfAudit"]) == ({}, [], [])
    assert layered["layersOfFunctions"] == layered["layersOfAudit"] == [{"Ref": "DependenciesLambdaLayer"}]
    assert layered["layers"].keys() == {"dependencies"}
    layer = layered["layers"]["dependencies"]
    assert layer["name"] == "s3-auditor-prod-dependencies"
    assert layer["package"] == {"artifact": ".build/function-arm64-layer.zip"}
    assert layered["artifact"] == ".build/function-arm64.zip"


@needs_osls
@pytest.mark.parametrize("dependencies", ["bundled", "layer"])
def test_duckdb_is_a_layer_of_the_audit_alone(dependencies: str) -> None:
    found = resolved(dependencies=dependencies, parquet="true", inventory="s3://reports", architecture="x86_64")
    assert {"Ref": "ParquetLambdaLayer"} in found["layersOfAudit"]
    others = [one for one in found["layersOfAudit"] if one != {"Ref": "ParquetLambdaLayer"}]
    assert others == found["layersOfFunctions"] == resolved(dependencies=dependencies)["layersOfFunctions"]
    layer = found["layers"]["parquet"]
    assert layer["package"] == {"artifact": ".build/parquet-x86_64.zip"}
    assert (layer["compatibleArchitectures"], layer["compatibleRuntimes"]) == (["x86_64"], ["python3.13"])
    newer = resolved(parquet="true", inventory="s3://reports", runtime="python3.14", engines="all", engine="aioboto3")
    assert newer["layers"]["parquet"]["compatibleRuntimes"] == ["python3.14"]


@needs_osls
def test_with_too_little_memory_the_template_takes_no_inventory_later() -> None:
    for memory, takes in (("511", False), ("512", True)):
        pattern = re.compile(resolved(auditMemory=memory)["inventoryPattern"])
        assert pattern.fullmatch("")
        assert bool(pattern.fullmatch("my-reports")) == takes


@needs_osls
def test_the_function_reads_a_configuration_under_one_name_whatever_it_is_called() -> None:
    assert resolved()["configFile"] == ""
    assert resolved(config="../elsewhere/ours.toml")["configFile"] == "auditor.toml"
