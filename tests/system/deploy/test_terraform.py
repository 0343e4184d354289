"""The Terraform module: the values that it gives to the stack, by Terraform's own evaluation, and the stack of these.

The provider of AWS is not at hand offline. Each of its resources is `terraform_data` here, which only has values.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any, Final

import boto3
import pytest

from deploy.template import PLACEHOLDER, plain, with_buckets
from tests.support.paths import ROOT
from tests.system.deploy.checks.packaged import needs_osls, template
from tests.system.e2e.deployment import serving

MODULE: Final = ROOT / "deploy" / "terraform"
TERRAFORM: Final = shutil.which("terraform")
SERVER: Final = shutil.which(str(ROOT / ".venv-deploy" / "bin" / "moto_server"))
_RESOURCE: Final = re.compile(r'^resource "(aws_\w+)" "(\w+)" \{\n(.*?)^\}\n', re.DOTALL | re.MULTILINE)
_LIFECYCLE: Final = re.compile(r"^  lifecycle \{\n.*?^  \}\n", re.DOTALL | re.MULTILINE)
pytestmark = [needs_osls, pytest.mark.skipif(TERRAFORM is None, reason="terraform is not here")]


def terraform(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    assert TERRAFORM is not None
    command = [TERRAFORM, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


def as_values(text: str) -> str:
    """Turn the resources of AWS into values, and what reads them too."""
    text = re.sub(r'    aws = \{.*?\n    \}\n|^data "aws_s3_bucket" .*?^\}\n', "", text, flags=re.DOTALL | re.MULTILINE)
    text = text.replace("${data.aws_s3_bucket.code.bucket_regional_domain_name}", "${var.code_bucket}.s3.amazonaws.com")
    text = re.sub(r"\baws_(?:s3_object|cloudformation_stack)\.(\w+)\.", r"terraform_data.\1.output.", text)
    return _RESOURCE.sub(_as_value, text)


def _as_value(resource: re.Match[str]) -> str:
    """Return a value that another value replaces, in the order that the resource's `lifecycle` says."""
    _, name, body = resource.groups()
    lifecycle = _LIFECYCLE.search(body)
    given = _LIFECYCLE.sub("", body)
    order = lifecycle[0] if lifecycle else ""
    return (
        f'resource "terraform_data" "{name}" {{\n{order}  triggers_replace = {{\n{given}  }}\n'
        f"  input = {{\n{given}  }}\n}}\n"
    )


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of the level fixity; its package is a zip with nothing of ours."""
    folder = tmp_path_factory.mktemp("release")
    made = with_buckets(plain(template(f"buckets={PLACEHOLDER}", "level=fixity", "bucketAlarms=false")))
    (folder / "template-fixity-arm64.json").write_text(json.dumps(made))
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("handlers/audit.py", "")
    (folder / "function-arm64.zip").write_bytes(written.getvalue())
    return folder


@pytest.fixture
def apply(release: Path, tmp_path: Path) -> Any:
    """Apply the module with variables; what its resources are given, by their names, or Terraform's words."""
    for path in MODULE.glob("*.tf"):
        (tmp_path / path.name).write_text(as_values(path.read_text()))
    (tmp_path / "outputs.tf").write_text(
        'output "files" { value = [terraform_data.package.output, terraform_data.template.output] }\n'
        'output "stack" { value = terraform_data.auditor.output }\n'
    )

    def call(**variables: Any) -> dict[str, Any] | str:
        given = {"release": str(release), "code_bucket": "code", "buckets": ["photos", "a.b-c"], "level": "fixity"}
        (tmp_path / "terraform.tfvars.json").write_text(json.dumps(given | variables))
        for command in (("init",), ("apply", "-auto-approve")):
            done = terraform(tmp_path, *command, "-input=false", "-no-color")
            if done.returncode:
                return done.stderr
        found = json.loads(terraform(tmp_path, "output", "-json").stdout)
        return {name: one["value"] for name, one in found.items()}

    return call


def test_the_old_package_stays_until_the_stack_has_the_new_one(tmp_path: Path) -> None:
    for path in MODULE.glob("*.tf"):
        (tmp_path / path.name).write_text(as_values(path.read_text()))
    (tmp_path / "outputs.tf").unlink()
    (tmp_path / "template-metadata-arm64.json").write_text("{}")
    given = {"release": str(tmp_path), "code_bucket": "code", "buckets": ["photos"]}
    (tmp_path / "terraform.tfvars.json").write_text(json.dumps(given))
    for package, command in ((b"1", "init"), (b"1", "apply"), (b"2", "plan")):
        (tmp_path / "function-arm64.zip").write_bytes(package)
        done = terraform(tmp_path, command, "-input=false", "-no-color", *["-auto-approve"] * (command == "apply"))
        assert done.returncode == 0, done.stderr
    assert re.search(r"\+/- resource \"terraform_data\" \"package\"", done.stdout), done.stdout


def test_the_page_gives_variables_that_there_are_and_the_files_are_formatted() -> None:
    done = terraform(MODULE, "fmt", "-check", "-diff")
    assert (done.returncode, done.stdout) == (0, "")
    (example,) = re.findall(r"```hcl\n(.*?)```", (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8"), re.DOTALL)
    text = (MODULE / "variables.tf").read_text()
    variables = dict(re.findall(r'^variable "(\w+)" \{\n(.*?)^\}', text, re.DOTALL | re.MULTILINE))
    given = set(re.findall(r"^  (\w+) +=", example, re.MULTILINE)) - {"source"}
    assert {name for name, one in variables.items() if "default" not in one} <= given <= variables.keys()


@pytest.mark.skipif(SERVER is None, reason="moto's server is not installed: .venv-deploy")
def test_what_it_gives_makes_the_stack(apply: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = apply(parameters={"AlertAddress": "me@example.com"})
    files, stack = made["files"], made["stack"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    assert SERVER is not None
    with serving(SERVER, tmp_path / "server.log") as url:
        s3, formation = (
            boto3.client(name, endpoint_url=url, region_name="us-east-1") for name in ("s3", "cloudformation")
        )
        s3.create_bucket(Bucket="code")
        for one in files:
            s3.upload_file(one["source"], one["bucket"], one["key"])
        formation.create_stack(
            StackName=stack["name"],
            TemplateURL=stack["template_url"],
            Capabilities=stack["capabilities"],
            Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in stack["parameters"].items()],
        )
        found = formation.list_stack_resources(StackName=stack["name"])["StackResourceSummaries"]
        functions = boto3.client("lambda", endpoint_url=url, region_name="us-east-1").list_functions()["Functions"]
    assert {one["FunctionName"]: one["Environment"]["Variables"].get("AUDITOR_BUCKETS") for one in functions} == {
        "s3-auditor-prod-audit": "photos,a.b-c",
        "s3-auditor-prod-hashing": None,
        "s3-auditor-prod-verify": "photos,a.b-c",
    }
    assert {"AuditMachine", "AuditRole", "Ledger", "ReportsBucket"} <= {one["LogicalResourceId"] for one in found}


def test_a_wrong_variable_is_refused_in_a_sentence(apply: Any) -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"buckets": []}, "Name at least one bucket"),
        ({"level": "deep"}, "Give exposure, metadata or fixity"),
        ({"architecture": "riscv"}, "Give arm64 or x86_64"),
        ({"parameters": {"CodeKey": "k"}}, "have variables of their own"),
    ]
    for variables, word in refused:
        assert word in " ".join(apply(**variables).replace("\u2502", " ").split()), variables
