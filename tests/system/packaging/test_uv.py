"""tools/uv: the uv of the PATH, or else one that pip brings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "uv", tmp_path / "tools" / "uv")
    (tmp_path / "bin").mkdir()
    return tmp_path


def run(project: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run tools/uv of the project where only its `bin` is on the PATH."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON"} | environ
    environment["PATH"] = str(project / "bin")
    command = ["/bin/sh", "tools/uv", *arguments]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_the_uv_on_the_path_is_taken(project: Path) -> None:
    program(project / "bin" / "uv", 'echo "$@"; exit 7')
    done = run(project, "sync", "a b")
    assert (done.returncode, done.stdout) == (7, "sync a b\n")
    assert not (project / ".build").exists()


def test_without_uv_and_with_an_old_python_it_says_what_to_install(project: Path) -> None:
    program(project / "bin" / "python3", "exit 1")
    done = run(project, "--version")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("neither uv nor Python 3.11 or later with venv is here: install uv, or python3")


def test_pip_brings_it_once(project: Path) -> None:
    first = run(project, "--version", PYTHON=sys.executable)
    assert first.stdout.startswith("uv "), first.stderr
    assert run(project, "--version").stdout == first.stdout
