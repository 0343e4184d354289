"""The template as osls makes it, in a folder of its own and without building what the functions run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from deploy.resolving import Stack
from tests.support.paths import ROOT

SERVERLESS = ROOT / "node_modules" / ".bin" / "serverless"
_ZIP = b"PK\x05\x06" + bytes(18)
needs_osls = pytest.mark.skipif(
    not SERVERLESS.exists() or shutil.which("node") is None, reason="osls is not installed: run npm ci"
)


def run(
    folder: Path,
    arguments: Sequence[str],
    *,
    command: str = "package",
    plugin: str = "none",
    **environ: str,
) -> subprocess.CompletedProcess[str]:
    """One of osls' commands in `folder`, a copy of the sources with an empty zip where the built one would be.

    plugin: the file name of the one plugin that is kept, for nothing is to be built: what package.js calls
    is a builder that builds nothing. environ: further variables.
    """
    shutil.copytree(ROOT / "deploy", folder / "deploy", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    lines = (ROOT / "serverless.yml").read_text().splitlines(keepends=True)
    kept = [line for line in lines if "./deploy/plugins/" not in line or line.endswith(f"/{plugin}\n")]
    if plugin == "none":
        kept.remove("plugins:\n")
    (folder / "serverless.yml").write_text("".join(kept))
    (folder / ".build").mkdir()
    for name in ("arm64", "x86_64", "local"):
        (folder / ".build" / f"function-{name}.zip").write_bytes(_ZIP)
    if plugin == "package.js":
        for name in ("__init__", "limits", "resolving"):
            shutil.copy(ROOT / "deploy" / f"{name}.py", folder / "deploy")
        (folder / "deploy" / "build.py").write_text("")
        (folder / ".venv").symlink_to(sys.prefix)
    (folder / "node_modules").symlink_to(ROOT / "node_modules")
    # No credentials: packaging must need none.
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        ["node", str(SERVERLESS), command, *arguments],
        cwd=folder,
        env=environment | {"NODE_NO_WARNINGS": "1"} | environ,
        capture_output=True,
        text=True,
        timeout=600,  # a thousand alarms take minutes on a busy machine
        check=False,
    )


def given(*parameters: str) -> list[str]:
    """osls' arguments of parameters, each of which is name=value."""
    return [part for one in parameters for part in ("--param", one)]


@cache
def template(*parameters: str, stage: str = "prod") -> dict[str, Any]:
    """The template that deploying with these parameters would bring, made once for all tests."""
    with tempfile.TemporaryDirectory(prefix="packaged-") as folder:
        done = run(Path(folder), ["--stage", stage, *given(*parameters)])
        assert done.returncode == 0, done.stdout + done.stderr
        found: dict[str, Any] = json.loads(
            (Path(folder) / ".serverless" / "cloudformation-template-update-stack.json").read_text()
        )
        return found


def of_level(level: str, *parameters: str) -> dict[str, Any]:
    return template("buckets=photos,s3://archive/2024/", f"level={level}", *parameters)


def stack_of(level: str, *parameters: str, **values: str) -> Stack:
    """The template resolved in us-east-1. values: of CloudFormation's own parameters."""
    return Stack(of_level(level, *parameters), region="us-east-1", parameters=values)


def statements(resources: dict[str, Any], role: str) -> dict[str, dict[str, Any]]:
    """The statements of a resolved role's one policy, by their Sid."""
    (policy,) = resources[role]["Properties"]["Policies"]
    return {one["Sid"]: one for one in policy["PolicyDocument"]["Statement"]}


def refusal(folder: Path, *arguments: str, command: str = "package", plugin: str = "none", **environ: str) -> str:
    """What osls says when it refuses the arguments."""
    done = run(folder, arguments, command=command, plugin=plugin, **environ)
    assert done.returncode != 0, done.stdout
    return done.stdout + done.stderr
