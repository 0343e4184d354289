"""The hook that builds the package whenever osls packages, run by node on a service of a few lines."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from deploy.options import ROOT

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed: osls needs it")
PLUGIN = ROOT / "deploy" / "plugins" / "package.js"
RUN = """
const Plugin = require(process.argv[1]);
const service = JSON.parse(process.argv[2]);
const getProvider = () => ({ getStage: () => process.argv[3] });
const plugin = new Plugin({ serviceDir: process.cwd(), service, getProvider, classes: { Error } });
for (const [name, hook] of Object.entries(plugin.hooks)) {
  if (name.startsWith('after:') !== (process.argv[4] === 'after')) continue;
  try { hook(); } catch (error) { process.stdout.write(error.message + '\\n'); process.exitCode = 1; }
}
"""


def program(path: Path, text: str, code: int = 0) -> None:
    """A program that notes how it is called."""
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{text}\nexit {code}\n")
    path.chmod(0o755)


def package(
    folder: Path,
    *,
    code: int = 0,
    environment: str | None = ".venv",
    stage: str = "prod",
    when: str = "before",
    **service: Any,
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run the hooks on a service with a builder that exits with `code`; what node said, and the builder's calls."""
    if environment is not None:
        program(folder / environment / "bin" / "python", 'echo "$@" >> called', code)
    functions: dict[str, Any] = {"audit": {}, "hashing": {}}
    given = {"package": {"artifact": ".build/f.zip"}, "provider": {"architecture": "arm64"}, "functions": functions}
    command = ["node", "-e", RUN, str(PLUGIN), json.dumps(given | service), stage, when]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    called = folder / "called"
    return done, called.read_text().replace(f"{folder}/", "").splitlines() if called.exists() else []


LAYER = {"parquet": {"package": {"artifact": ".build/parquet-arm64.zip"}}}
ARM = "-m deploy.build --architecture arm64"
TO = "--output .build/f.zip"
BUILDS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "as configured": ({}, [f"{ARM} {TO}"]),
    "osls' default": ({"provider": {}}, [f"-m deploy.build --architecture x86_64 {TO}"]),
    "local": ({"stage": "local"}, [f"-m deploy.build --local {TO}"]),
    "layer": ({"layers": {"dependencies": {}}}, [f"{ARM} --layer {TO}"]),
    "parquet": (
        {"layers": LAYER},
        [f"{ARM} {TO}", "-m deploy.parquet --architecture arm64 --output .build/parquet-arm64.zip"],
    ),
    "local parquet": (
        {"layers": LAYER, "stage": "local"},
        [f"-m deploy.build --local {TO}", "-m deploy.parquet --local --output .build/parquet-arm64.zip"],
    ),
    "config": ({"custom": {"checked": {"config": "conf/ours.toml"}}}, [f"{ARM} --config conf/ours.toml {TO}"]),
    "no config": ({"custom": {"checked": {"config": ""}}}, [f"{ARM} {TO}"]),
    "buckets": (
        {"custom": {"checked": {"config": "", "packedBuckets": ["one", "s3://two/p/"]}}},
        [f"{ARM} --buckets one,s3://two/p/ {TO}"],
    ),
    "newer python": (
        {"provider": {"architecture": "arm64", "runtime": "python3.14"}, "custom": {"checked": {"engines": "default"}}},
        [f"{ARM} --python 3.14 {TO}"],
    ),
    "engines": (
        {"provider": {"architecture": "arm64", "runtime": "python3.13"}, "custom": {"checked": {"engines": "all"}}},
        [f"{ARM} --python 3.13 --engines all {TO}"],
    ),
}
"""A service, and the calls of the builder before the service is packaged, as before a single function is."""


def test_it_builds_for_the_machine_that_runs_the_functions(tmp_path: Path) -> None:
    failures = {}
    for case, (service, calls) in BUILDS.items():
        done, called = package(tmp_path / case, **service)
        if (done.returncode, called) != (0, calls * 2):
            failures[case] = called
    assert not failures


@pytest.mark.parametrize(("code", "folder"), [(0, ".serverless"), (1, ".serverless"), (0, "elsewhere")])
def test_the_packaged_template_is_measured(tmp_path: Path, code: int, folder: str) -> None:
    given = {"artifact": ".build/f.zip"} | ({"path": folder} if folder == "elsewhere" else {})
    done, called = package(tmp_path, code=code, when="after", package=given)
    assert called == [f"-m deploy.limits {folder}/cloudformation-template-update-stack.json"]
    assert done.returncode == code
    assert ("nothing was sent: the reason is above" in done.stdout) == bool(code)


def test_services_that_cannot_be_built_are_refused(tmp_path: Path) -> None:
    mixed = {"audit": {}, "hashing": {"architecture": "x86_64"}}
    refused: dict[str, dict[str, Any]] = {
        "the functions differ in their architecture": {"functions": mixed},
        "package.artifact is not set": {"package": {}},
        "the package was not built: the reason is above": {"code": 1},
    }
    for sentence, service in refused.items():
        done, called = package(tmp_path / sentence, **service)
        assert done.returncode == 1, sentence
        assert sentence in done.stdout
        assert bool(called) == ("code" in service)


@pytest.mark.parametrize("code", [0, 1])
def test_without_make_install_uv_makes_an_environment_from_the_lock_or_is_asked_for(tmp_path: Path, code: int) -> None:
    program(tmp_path / "tools" / "uv", 'echo "$UV_PROJECT_ENVIRONMENT: $@" >> synced', code)
    done, called = package(tmp_path, environment=".build/venv" if code == 0 else None)
    assert (done.returncode, called) == (code, [] if code else [f"{ARM} {TO}"] * 2), done.stdout
    options = "sync --quiet --frozen --no-install-project --extra aioboto3 --extra crc64"
    assert set((tmp_path / "synced").read_text().splitlines()) == {f"{tmp_path}/.build/venv: {options}"}
    assert ("the package needs uv, or Python 3.11 or later" in done.stdout) == bool(code)
