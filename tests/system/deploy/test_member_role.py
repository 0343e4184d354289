"""The template of a member account's role: statement for statement what `auditor policy --all-buckets` prints."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from auditor.cli.main import main
from deploy.resolving import ACCOUNT, Stack
from tests.support.paths import ROOT
from tests.system.deploy.checks.sources import as_list, read

PATH: Final = "deploy/member-role.yml"
LINTER: Final = ROOT / ".venv-deploy" / "bin" / "cfn-lint"
AUDITOR: Final = f"arn:aws:iam::{ACCOUNT}:role/auditor"


def role(partition: str = "aws", **parameters: str) -> dict[str, Any]:
    stack = Stack(read(PATH), partition, "eu-west-1", {"Auditor": AUDITOR, **parameters})
    found: dict[str, Any] = stack.resources()["Role"]["Properties"]
    return found


def flat(statements: list[dict[str, Any]]) -> list[tuple[str, str, list[str], list[str]]]:
    return [(one["Sid"], one["Effect"], sorted(one["Action"]), as_list(one["Resource"])) for one in statements]


@pytest.mark.parametrize(
    ("parameters", "flags"),
    [
        ({}, ""),
        ({"Level": "exposure"}, "--level exposure"),
        ({"Level": "metadata", "Versions": "true"}, "--level metadata --versions"),
    ],
    ids=["defaults", "exposure", "versions"],
)
def test_its_rights_are_those_that_the_command_prints(
    capsys: pytest.CaptureFixture[str], parameters: dict[str, str], flags: str
) -> None:
    (made,) = role(**parameters)["Policies"]
    assert main(["policy", "--all-buckets", *flags.split()]) == 0
    assert flat(made["PolicyDocument"]["Statement"]) == flat(json.loads(capsys.readouterr().out)["Statement"])


def test_the_auditor_alone_assumes_it_and_with_the_external_id_where_there_is_one() -> None:
    allowed = {"Effect": "Allow", "Principal": {"AWS": AUDITOR}, "Action": "sts:AssumeRole"}
    assert role()["AssumeRolePolicyDocument"]["Statement"] == [allowed]
    condition = {"StringEquals": {"sts:ExternalId": "4c1f"}}
    assert role(ExternalId="4c1f")["AssumeRolePolicyDocument"]["Statement"] == [allowed | {"Condition": condition}]


def test_it_names_the_buckets_of_its_own_partition() -> None:
    (made,) = role("aws-cn")["Policies"]
    resources = {as_list(one["Resource"])[0] for one in made["PolicyDocument"]["Statement"]}
    assert resources == {"*", "arn:aws-cn:s3:::*", "arn:aws-cn:s3:::*/*"}


def test_an_auditor_that_is_no_one_identity_is_refused() -> None:
    pattern = read(PATH)["Parameters"]["Auditor"]["AllowedPattern"]
    assert re.search(pattern, AUDITOR)
    wrong = ("*", "123456789012", "arn:aws:iam::*:root", "arn:aws:iam::123456789012:role/")
    assert not [one for one in wrong if re.search(pattern, one)]


def test_the_page_names_parameters_that_it_has() -> None:
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    named = re.findall(r"ParameterKey=(\w+)", page)
    named += re.findall(r"`(\w+)`", page.partition("Its parameters ")[2].partition(" set ")[0])
    assert sorted(named) == sorted(read(PATH)["Parameters"])


@pytest.mark.skipif(not LINTER.exists(), reason="cfn-lint is not installed: .venv-deploy")
def test_the_linter_of_templates_finds_nothing() -> None:
    command = [str(LINTER), "--non-zero-exit-code", "informational", "-t", str(Path(ROOT, PATH))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
