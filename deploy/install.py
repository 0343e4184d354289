"""Install the locked requirements, for another machine, into a folder with uv."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from deploy.errors import BuildError
from deploy.options import PYTHON, Options


def install(folder: Path, options: Options) -> None:
    """Install only wheels, and check each against its hash in the lock. uv's messages go to stderr."""
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--target", str(folder)]
    command += ["--python", sys.executable, "--python-version", PYTHON, "--only-binary", ":all:", "--require-hashes"]
    command += ["--no-compile-bytecode", "--link-mode", "copy"]  # links would point into uv's cache
    if options.platform:
        command += ["--python-platform", options.platform]
    command += ["-r", str(options.root / options.requirements)]
    if subprocess.run(command, check=False).returncode:  # noqa: S603 - our own arguments
        raise BuildError(f"uv did not install {options.requirements} for {options.architecture}: see its message above")
