"""Run the functions' Python version with the package alone on its path."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from deploy.options import PYTHON
from tools import interpreters

_SHARED = ("PATH", "HOME", "SSL_CERT_FILE", "LANG")


def find(version: str = PYTHON) -> Path | None:
    """Return the interpreter of a version of Python; None if this machine has none that starts."""
    return interpreters.find(version)


def run(python: Path, search: str, code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run code that can import only the standard library and `search` (its PYTHONPATH). No bytecode is written."""
    environ = {name: os.environ[name] for name in _SHARED if name in os.environ}
    environ |= {"PYTHONPATH": search, "AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "us-east-1"}
    return subprocess.run(  # noqa: S603 - our own arguments
        [str(python), "-S", "-B", "-c", code], cwd=cwd, env=environ, capture_output=True, text=True, check=False
    )
