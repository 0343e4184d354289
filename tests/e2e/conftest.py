"""What runs the functions: python3.13, the real runtime client from its lock, and the package unzipped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy import python
from deploy.options import PYTHON, ROOT
from tests.deploy.checks.packaged import SERVERLESS
from tests.e2e.deployment import Deployment, serving
from tests.e2e.environment import Machine

REQUIREMENTS = Path(__file__).with_name("requirements.txt")


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """Skips where there is no interpreter of the functions' version."""
    interpreter = python.find()
    if interpreter is None:
        pytest.skip(f"there is no python{PYTHON} on this machine: the functions are not run as Lambda runs them")
    folder = tmp_path_factory.mktemp("awslambdaric")
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--target", str(folder), "--no-deps"]
    command += ["--python", sys.executable, "--python-version", PYTHON, "--only-binary", ":all:", "--require-hashes"]
    subprocess.run([*command, "-r", str(REQUIREMENTS)], check=True)
    return Machine(interpreter, folder)


def _server_command() -> str | None:
    """moto with all that deploying takes has an environment of its own, requirements-deploy.txt's."""
    given = os.environ.get("MOTO_SERVER") or str(ROOT / ".venv-deploy" / "bin" / "moto_server")
    return shutil.which(given)


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Deployed once for all tests, and a sample bucket. Skips where osls or moto's server is not installed."""
    command = _server_command()
    if command is None:
        pytest.skip("moto's server is not installed: set MOTO_SERVER to the moto_server of requirements-deploy.txt")
    if not SERVERLESS.exists() or shutil.which("node") is None:
        pytest.skip("osls is not installed: run npm ci")
    folder = tmp_path_factory.mktemp("deployment")
    with serving(command, folder / "server.log") as url:
        made = Deployment(url, folder)
        made.osls("deploy")
        made.take_over()
        yield made
        outputs = made.outputs()
        kept = {outputs["LedgerTable"], outputs["Reports"].removeprefix("s3://").partition("/")[0]}
        made.osls("remove")
        assert made.left() == kept, "removing takes all but what was found out"
