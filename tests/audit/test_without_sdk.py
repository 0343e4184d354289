"""An audit imports only the modules that it needs: with a plain configuration no SDK, without a ledger no hashing.

Importing an SDK costs more than auditing a hundred objects. The imports are most of the CPU of a small audit.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from auditor.aws.connection import Connection
from auditor.aws.session import make_client
from tests.support.paths import ROOT

SDKS: Final = ("aioboto3", "aiobotocore", "aiohttp", "awscrt", "boto3", "botocore", "s3transfer", "urllib3")
CODE: Final = """
import json, sys
from auditor.cli.main import main
code = main(sys.argv[1:])
sys.stderr.write(json.dumps({"code": code, "modules": sorted(sys.modules)}))
"""
UNNEEDED: Final = re.compile(
    r"auditor\.(audit\.hashing|hashing\.(?!limits$|queue|batch)|ledger\.(sqlite|dynamodb|manifests)|verify|lambdas)"
    r"|email|sqlite3|tomllib|_strptime|difflib"
)
"""Modules that an audit does without if it has no ledger and no auditor.toml: they hash, or their import is dear."""
MOST_MODULES: Final = 360
"""Number of modules of ours that such an audit may import. It imports 354, each in about a fifth of a
millisecond."""


@pytest.fixture
def objects(moto_url: str) -> Iterator[str]:
    """An AWS with ten objects in s3://audited, and an empty bucket for run folders; its URL."""
    client: Any = make_client("s3", Connection(bucket="audited", endpoint_url=moto_url), endpoint_url=moto_url)
    for bucket in ("audited", "run-folders"):
        client.create_bucket(Bucket=bucket)
    for number in range(10):
        client.put_object(Bucket="audited", Key=f"key-{number}", Body=b"x")
    yield moto_url
    for bucket in ("audited", "run-folders"):
        for item in client.list_objects_v2(Bucket=bucket).get("Contents", ()):
            client.delete_object(Bucket=bucket, Key=item["Key"])
        client.delete_bucket(Bucket=bucket)
    client.close()


def audited(url: str, out: str) -> tuple[dict[str, Any], set[str]]:
    """The summary of an audit in a process of its own, and the modules that it imported."""
    options = ["s3://audited", "--endpoint-url", url, "--out", out, "--format", "json", "--fail-on", "never"]
    command = [sys.executable, "-c", CODE, "audit", *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    told = json.loads(done.stderr.splitlines()[-1])
    return json.loads(done.stdout), set(told["modules"])


@pytest.mark.parametrize(("keys", "out"), [("environment", "a directory"), ("profile", "s3://run-folders/runs")])
def test_no_sdk_is_imported(objects: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str, keys: str) -> None:
    if keys == "profile":
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        Path(os.environ["AWS_SHARED_CREDENTIALS_FILE"]).write_text(
            "[default]\naws_access_key_id = testing\naws_secret_access_key = testing\n"
        )
        Path(os.environ["AWS_CONFIG_FILE"]).write_text("[default]\nregion = us-east-1\noutput = json\n")
    summary, imported = audited(objects, str(tmp_path) if out == "a directory" else out)
    assert (summary["complete"], summary["coverage"]["audited"], imported & set(SDKS)) == (True, 10, set())
    assert [name for name in sorted(imported) if UNNEEDED.match(name)] == []
    assert len([name for name in imported if name.startswith("auditor.")]) <= MOST_MODULES


def test_a_profile_that_only_the_sdk_understands(objects: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    keys = '{"Version": 1, "AccessKeyId": "testing", "SecretAccessKey": "testing"}'
    Path(os.environ["AWS_CONFIG_FILE"]).write_text(f"[default]\ncredential_process = echo '{keys}'\n")
    summary, imported = audited(objects, str(tmp_path))
    assert (summary["coverage"]["audited"], "botocore" in imported) == (10, True)
