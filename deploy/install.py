"""Install the locked requirements, for another machine, into a folder with uv."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from deploy.archive import replace
from deploy.errors import BuildError
from deploy.options import ROOT, Options

UV: Final = str(ROOT / "tools" / "uv")


def locked(kind: str, selection: Sequence[str]) -> str:
    """Write a part of uv.lock as requirements with hashes. Return the file's path, relative to the project.

    kind: a part of the file's name. selection: the options of `uv export` that choose the part. Raises BuildError.
    """
    command = [UV, "export", "--quiet", "--frozen", "--no-header", "--no-emit-project", *selection]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=False)  # noqa: S603 - our own arguments
    if done.returncode:
        raise BuildError("uv did not read uv.lock: see its message above")
    path = Path(".build") / f"requirements-{kind}.txt"
    replace(ROOT / path, done.stdout)
    return str(path)


def install(folder: Path, options: Options) -> None:
    """Install only wheels, and check each against its hash in the lock. uv's messages go to stderr."""
    install_requirements(options.root / options.requirements, folder, options.python, options.platform)


def install_requirements(requirements: Path, folder: Path, python: str, platform: str | None = None) -> None:
    """Install wheels for a version of Python. platform: uv's name of it; None: this machine. Raises BuildError."""
    command = [UV, "pip", "install", "--quiet", "--target", str(folder)]
    command += ["--python", sys.executable, "--python-version", python, "--only-binary", ":all:", "--require-hashes"]
    command += ["--no-compile-bytecode", "--link-mode", "copy"]  # links would point into uv's cache
    if platform:
        command += ["--python-platform", platform]
    command += ["-r", str(requirements)]
    if subprocess.run(command, check=False).returncode:  # noqa: S603 - our own arguments
        target = platform or "this machine"
        raise BuildError(f"uv did not install {requirements.name} for {target}: see its message above")
