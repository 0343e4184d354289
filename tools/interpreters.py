"""The interpreters of Python on this machine, by their versions."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path


def find(version: str) -> Path | None:
    """Return the interpreter of a version, such as "3.13"; None if this machine has none that starts."""
    command = shutil.which(f"python{version}")
    if command is None:
        return None
    environ = {**os.environ, "PYENV_VERSION": version}  # without it, pyenv's command does not start
    asked = subprocess.run(  # noqa: S603 - an interpreter on the PATH, which prints its own path
        [command, "-c", "import sys; print(sys.executable)"], env=environ, capture_output=True, text=True, check=False
    )
    return Path(asked.stdout.strip()) if asked.returncode == 0 else None
