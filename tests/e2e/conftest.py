"""What runs the functions: python3.13, the real runtime client from its lock, and the package unzipped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from deploy import python
from deploy.options import PYTHON
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
