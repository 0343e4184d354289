"""The wheel in a virtual environment of its own, with the locked base requirements and no extra."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.servers.stub import StubServer


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT, check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("venv")
    uv("venv", str(folder), "--python", sys.executable)
    python, base = folder / "bin" / "python", folder / "base.txt"
    base.write_text(uv("export", "--frozen", "--no-emit-project"))
    uv("pip", "install", "--python", str(python), "--require-hashes", "-r", str(base))
    uv("pip", "install", "--python", str(python), "--no-deps", str(wheel))
    return python


def uv(*arguments: str) -> str:
    """What uv printed on stdout."""
    command = [str(ROOT / "tools" / "uv"), "--quiet", *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def run(python: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(python), *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def metadata(folder: Path, **environ: str) -> list[str]:
    """The lines of the metadata of a wheel that is built with these variables."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    given = {name: value for name, value in os.environ.items() if name != "PROJECT_URL"} | environ
    subprocess.run(command, cwd=ROOT, check=True, env=given, capture_output=True)
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        (name,) = [one for one in archive.namelist() if one.endswith(".dist-info/METADATA")]
        return archive.read(name).decode().splitlines()


def test_the_wheel_holds_the_package_alone_and_names_the_home_that_its_builder_gives(
    wheel: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"auditor"}
    lines = metadata(tmp_path / "with", PROJECT_URL="https://example.org/s3-auditor/")
    assert "Author: The maintainers of s3-auditor" in lines
    assert [line for line in lines if line.startswith("Project-URL: ")] == [
        "Project-URL: Homepage, https://example.org/s3-auditor",
        "Project-URL: Documentation, https://example.org/s3-auditor/blob/HEAD/docs",
        "Project-URL: Changelog, https://example.org/s3-auditor/blob/HEAD/CHANGELOG.md",
    ]
    assert not [line for line in metadata(tmp_path / "without") if line.startswith("Project-URL: ")]


def test_the_conformance_suites_are_auditor_testing(python: Path, tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from auditor.ledger.manifests import FORMS; from auditor.testing import *;"
        " [check(form, Path()) for form in FORMS.values() for check in MANIFEST_CHECKS];"
        " print(len(ENGINE_CHECKS) > 20, len(LEDGER_CHECKS) > 50, MemoryEngine.__module__)"
    )
    done = run(python, "-c", code, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("True True auditor.testing.memory\n", "")


def test_the_base_is_small_and_has_the_newest_sdk_alone(python: Path) -> None:
    uv("pip", "check", "--python", str(python))
    (packages,) = (python.parent.parent / "lib").glob("python3.*/site-packages")
    files = [path for path in packages.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert 10_000_000 < sum(path.stat().st_size for path in files) <= 56_000_000
    installed = uv("pip", "freeze", "--python", str(python)).splitlines()
    newest = uv("export", "--frozen", "--no-emit-project", "--no-hashes", "--only-group", "newest").splitlines()
    assert [one for one in installed if one.startswith(("boto3==", "botocore=="))] == [
        one for one in newest if one.startswith(("boto3==", "botocore=="))
    ]
    names = {one.partition("==")[0] for one in installed}
    assert not names & {"aioboto3", "aiobotocore", "awscrt", "duckdb", "moto"}


def test_the_lock_and_requirements_txt_are_in_step_with_the_project() -> None:
    uv("lock", "--check", "--default-index", "https://pypi.org/simple")
    engines = ("--extra", "aioboto3", "--extra", "crc64")
    made = uv("export", "--frozen", "--no-header", "--no-emit-project", *engines)
    assert made == (ROOT / "requirements.txt").read_text(), "run make lock"


def test_the_demo_runs_from_the_wheel_with_its_extra(wheel: Path, tmp_path: Path) -> None:
    command = [str(ROOT / "tools" / "uv"), *f"tool run --quiet --python {sys.executable} --from".split()]
    command += [f"{wheel}[demo]", "auditor", "demo"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_audit_runs_without_any_extra(python: Path, tmp_path: Path, stub: StubServer) -> None:
    stub.put("audited", "a", b"x", acl="public-read")
    command = ("-m", "auditor", "audit", "s3://audited", "--endpoint-url", stub.url, "--format", "json")
    done = run(python, *command, cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert json.loads(done.stdout)["verdicts"]["exposed"] == 1


def test_a_part_that_is_not_installed_is_refused_with_the_command_that_brings_it(python: Path, tmp_path: Path) -> None:
    for command, said in (("audit s3://audited --engine aioboto3", "pip install '.[aioboto3]'"), ("demo", ".[demo]")):
        done = run(python, "-m", "auditor", *command.split(), cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, ""), command
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert not list(tmp_path.glob("*/bucket=*")), "no run is begun"


@pytest.mark.parametrize("module", ["handlers.audit", "handlers.hashing", "handlers.verify"])
def test_a_handler_loads_its_engine_before_the_first_event_and_nothing_of_the_command_line(
    python: Path, tmp_path: Path, module: str
) -> None:
    engines = [f"auditor.s3.engines.{name}" for name in ("direct", "aioboto3", "boto3")]
    names = (*engines, "aiohttp", "aioboto3", "moto", "auditor.cli")
    code = f"import {module}, sys; print(*(name for name in {names} if name in sys.modules))"
    shutil.copytree(ROOT / "handlers", tmp_path / "handlers")  # the functions' package has them, the wheel has not
    done = run(python, "-c", code, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("auditor.s3.engines.direct\n", "")
