"""The hook that builds the package whenever osls packages, run by node on a service of a few lines."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from deploy.options import ROOT

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
console.log(JSON.stringify(Object.keys(plugin.hooks)));
"""


@pytest.fixture
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("node is not installed: osls needs it, and so does this test of its plugin")
    return found


def builder(folder: Path, code: int = 0, environment: str = ".venv") -> None:
    """A builder that notes how it is called."""
    python = folder / environment / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\necho "$@" >> called\nexit {code}\n')
    python.chmod(0o755)


def package(
    node: str, folder: Path, service: dict[str, Any], stage: str = "prod", when: str = "before"
) -> subprocess.CompletedProcess[str]:
    command = [node, "-e", RUN, str(PLUGIN), json.dumps(service), stage, when]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def service(**provider: str) -> dict[str, Any]:
    artifact = {"artifact": ".build/f.zip"}
    return {"package": artifact, "provider": provider, "functions": {"audit": {}, "hashing": {}}}


def test_it_builds_before_a_service_and_before_a_single_function_are_packaged(node: str, tmp_path: Path) -> None:
    builder(tmp_path)
    done = package(node, tmp_path, service(architecture="arm64"))
    assert done.returncode == 0, done.stdout
    hooks = ["before:package:createDeploymentArtifacts", "before:deploy:function:packageFunction"]
    assert json.loads(done.stdout) == [*hooks, "after:package:finalize"]
    call = f"-m deploy.build --architecture arm64 --output {tmp_path}/.build/f.zip"
    assert (tmp_path / "called").read_text().splitlines() == [call, call]


@pytest.mark.parametrize(
    ("provider", "stage", "target"),
    [
        ({"architecture": "x86_64"}, "prod", "--architecture x86_64"),
        ({}, "prod", "--architecture x86_64"),
        ({"architecture": "arm64"}, "local", "--local"),
    ],
    ids=["as configured", "osls' default", "local"],
)
def test_it_builds_for_the_machine_that_runs_the_functions(
    node: str, tmp_path: Path, provider: dict[str, str], stage: str, target: str
) -> None:
    builder(tmp_path)
    package(node, tmp_path, service(**provider), stage)
    assert f"deploy.build {target} --output" in (tmp_path / "called").read_text()


def test_a_service_with_a_layer_gets_its_layer_built(node: str, tmp_path: Path) -> None:
    builder(tmp_path)
    package(node, tmp_path, {**service(architecture="arm64"), "layers": {"dependencies": {}}})
    assert "deploy.build --architecture arm64 --layer --output" in (tmp_path / "called").read_text()


@pytest.mark.parametrize(("stage", "target"), [("prod", "--architecture arm64"), ("local", "--local")])
def test_a_service_that_reads_parquet_gets_that_layer_too(node: str, tmp_path: Path, stage: str, target: str) -> None:
    builder(tmp_path)
    layers = {"parquet": {"package": {"artifact": ".build/parquet-arm64.zip"}}}
    package(node, tmp_path, {**service(architecture="arm64"), "layers": layers}, stage)
    first, second, *_ = (tmp_path / "called").read_text().splitlines()
    assert first == f"-m deploy.build {target} --output {tmp_path}/.build/f.zip"
    assert second == f"-m deploy.parquet {target} --output {tmp_path}/.build/parquet-arm64.zip"


def test_a_configuration_is_handed_to_the_builder(node: str, tmp_path: Path) -> None:
    builder(tmp_path)
    for config in ("conf/ours.toml", ""):
        package(node, tmp_path, {**service(architecture="arm64"), "custom": {"checked": {"config": config}}})
    first, _, second, _ = (tmp_path / "called").read_text().splitlines()
    assert "--architecture arm64 --config conf/ours.toml --output" in first
    assert "--config" not in second


def test_a_list_of_buckets_is_handed_to_the_builder(node: str, tmp_path: Path) -> None:
    builder(tmp_path)
    checked = {"config": "", "packedBuckets": ["one", "s3://two/p/"]}
    package(node, tmp_path, {**service(architecture="arm64"), "custom": {"checked": checked}})
    assert "--buckets one,s3://two/p/ --output" in (tmp_path / "called").read_text()


@pytest.mark.parametrize(("code", "folder"), [(0, ".serverless"), (1, ".serverless"), (0, "elsewhere")])
def test_the_packaged_template_is_measured(node: str, tmp_path: Path, code: int, folder: str) -> None:
    builder(tmp_path, code=code)
    given = service()
    if folder == "elsewhere":  # serverless package --package elsewhere
        given["package"]["path"] = folder
    done = package(node, tmp_path, given, when="after")
    template = f"{tmp_path}/{folder}/cloudformation-template-update-stack.json"
    assert (tmp_path / "called").read_text() == f"-m deploy.limits {template}\n"
    assert done.returncode == code
    assert ("nothing was sent: the reason is above" in done.stdout) == bool(code)


def test_functions_of_two_architectures_are_refused(node: str, tmp_path: Path) -> None:
    builder(tmp_path)
    mixed = service(architecture="arm64")
    mixed["functions"]["hashing"]["architecture"] = "x86_64"
    done = package(node, tmp_path, mixed)
    assert done.returncode == 1
    assert "the functions differ in their architecture" in done.stdout
    assert not (tmp_path / "called").exists()


def test_a_build_that_fails_fails_the_packaging(node: str, tmp_path: Path) -> None:
    builder(tmp_path, code=1)
    done = package(node, tmp_path, service())
    assert done.returncode == 1
    assert "the package was not built: the reason is above" in done.stdout


def uv(folder: Path, code: int) -> None:
    """A uv that notes how it is called, and for which environment."""
    (folder / "tools").mkdir()
    path = folder / "tools" / "uv"
    path.write_text(f'#!/bin/sh\necho "$UV_PROJECT_ENVIRONMENT: $@" >> synced\nexit {code}\n')
    path.chmod(0o755)


def test_without_make_install_uv_makes_an_environment_from_the_lock(node: str, tmp_path: Path) -> None:
    uv(tmp_path, 0)
    builder(tmp_path, environment=".build/venv")
    done = package(node, tmp_path, service(architecture="arm64"))
    assert done.returncode == 0, done.stdout
    call = f"-m deploy.build --architecture arm64 --output {tmp_path}/.build/f.zip"
    assert (tmp_path / "called").read_text().splitlines() == [call, call]
    synced = set((tmp_path / "synced").read_text().splitlines())
    options = "sync --quiet --frozen --no-install-project --extra aioboto3 --extra crc64"
    assert synced == {f"{tmp_path}/.build/venv: {options}"}


def test_without_uv_and_without_python_it_says_that_it_needs_one(node: str, tmp_path: Path) -> None:
    uv(tmp_path, 1)
    done = package(node, tmp_path, service())
    assert done.returncode == 1
    assert "the package needs uv, or Python 3.11 or later" in done.stdout


@pytest.mark.parametrize(
    ("runtime", "engines", "options"),
    [("python3.14", "default", "--python 3.14"), ("python3.13", "all", "--python 3.13 --engines all")],
)
def test_it_builds_for_the_functions_python_and_engines(
    node: str, tmp_path: Path, runtime: str, engines: str, options: str
) -> None:
    builder(tmp_path)
    package(node, tmp_path, {**service(runtime=runtime), "custom": {"checked": {"engines": engines}}})
    assert f"--architecture x86_64 {options} --output" in (tmp_path / "called").read_text()


def test_a_service_that_names_no_package_is_refused(node: str, tmp_path: Path) -> None:
    builder(tmp_path)
    done = package(node, tmp_path, {**service(), "package": {}})
    assert done.returncode == 1
    assert "package.artifact is not set" in done.stdout
