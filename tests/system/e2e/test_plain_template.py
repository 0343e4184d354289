"""The plain template, deployed without Node by the commands of docs/deploy.md, and an audit invoked: by the AWS CLI."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import boto3
import pytest

from deploy import build, template
from deploy.options import ROOT
from tests.system.deploy.checks import packaged
from tests.system.e2e.conftest import server_command
from tests.system.e2e.deployment import serving
from tests.system.e2e.environment import REGION, Function, Machine
from tests.system.e2e.runtime import LocalLambda

AUDITED: Final = "audited"
CODE: Final = "code-on-localhost"
"""By "localhost" the server here knows that the bucket of a template's URL stands in its path."""
FUNCTION: Final = "s3-auditor-prod-audit"
PAGE: Final = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8").partition("## Without Node")[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what `make template` leaves: the template, and the package for this machine in place of arm64's."""
    place = tmp_path_factory.mktemp("plain")
    made = packaged.template(f"buckets={AUDITED}", "level=metadata", "architecture=host")
    (place / "osls.json").write_text(json.dumps(made))
    (place / ".build").mkdir()
    template.main(["--made", str(place / "osls.json"), "--output", str(place / ".build" / "template.json")])
    assert build.main(["--local", "--output", str(place / ".build" / "function-arm64.zip")]) == 0
    return place


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    command = server_command()
    with serving(command, tmp_path_factory.mktemp("server") / "log") as found:
        yield found


def client(url: str, service: str) -> Any:
    return boto3.Session("testing", "testing", region_name=REGION).client(service, endpoint_url=url)


def shell(folder: Path, script: str, **environ: str) -> str:
    """Run a script with the AWS CLI of this machine, or else of PyPI; what it printed."""
    if shutil.which("aws") is None:
        script = f'aws() {{ "{ROOT}/tools/uv" tool run --quiet --from awscli aws "$@"; }}\n{script}'
    given = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    given |= {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_REGION": REGION}
    given |= {"AWS_DEFAULT_REGION": REGION, "AWS_CONFIG_FILE": "/dev/null", "AWS_PAGER": ""} | environ
    done = subprocess.run(
        ["bash", "-euc", script], cwd=folder, env=given, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def deployed(url: str, folder: Path) -> Function:
    """The function as the stack made it, with its package from the bucket that it was uploaded to."""
    found = client(url, "lambda").get_function(FunctionName=FUNCTION)
    (key,) = [one["Key"] for one in client(url, "s3").list_objects_v2(Bucket=CODE)["Contents"] if "zip" in one["Key"]]
    assert found["Code"]["Location"].endswith(key)
    body = client(url, "s3").get_object(Bucket=CODE, Key=key)["Body"].read()
    made = found["Configuration"]
    assert base64.b64encode(hashlib.sha256(body).digest()).decode() == made["CodeSha256"]
    (folder / "deployed.zip").write_bytes(body)
    with zipfile.ZipFile(folder / "deployed.zip") as archive:
        archive.extractall(folder / "package")
    return Function(
        FUNCTION,
        made["Handler"],
        folder / "package",
        made["Timeout"],
        made["MemorySize"],
        made["Environment"]["Variables"],
        made["Runtime"],
        log_format="JSON",
    )


@packaged.needs_osls
def test_the_aws_cli_deploys_it_and_an_audit_runs(url: str, folder: Path, machine: Machine, tmp_path: Path) -> None:
    for bucket in (CODE, AUDITED):
        client(url, "s3").create_bucket(Bucket=bucket)
    client(url, "s3").put_object(Bucket=AUDITED, Key="site/index.html", Body=b"x", ACL="public-read")
    client(url, "s3").put_object(Bucket=AUDITED, Key="private", Body=b"x")

    make, commands = re.findall(r"```sh\n(make template .*?)\n(.*?)```", PAGE, re.DOTALL)[0]
    assert make.split()[:2] == ["make", "template"]
    shell(folder, commands.replace("CODE-BUCKET", CODE).replace("s3 cp", "s3 cp --quiet"), AWS_ENDPOINT_URL=url)

    with LocalLambda([deployed(url, tmp_path)], machine, tmp_path, endpoint=url) as local:
        (tmp_path / "event.json").write_text(json.dumps({"bucket": AUDITED}))
        invoke = f"aws lambda invoke --function-name {FUNCTION} --payload fileb://event.json answer.json"
        status = json.loads(shell(tmp_path, f"{invoke} --output json", AWS_ENDPOINT_URL=local.url))
    assert (status["StatusCode"], "FunctionError" in status) == (200, False), (tmp_path / "answer.json").read_text()
    (run,) = json.loads((tmp_path / "answer.json").read_text())["runs"]
    assert (run["complete"], run["coverage"]["audited"], run["verdicts"]["exposed"]) == (True, 2, 1)
    reports, _, prefix = run["out"].removeprefix("s3://").partition("/")
    body = client(url, "s3").get_object(Bucket=reports, Key=f"{prefix}/summary.json")["Body"].read()
    assert json.loads(body)["verdicts"] == run["verdicts"]
