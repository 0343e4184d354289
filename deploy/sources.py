"""Select our own code for the package: the functions' modules, without the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from deploy.cut import Files

PACKAGES: Final = ("auditor", "handlers")
LEFT_OUT: Final = ("auditor/__main__.py", "auditor/testing.py", "auditor/cli", "auditor/offline")
"""For people at a terminal, for other programs and for tests. The demo makes buckets; a function must not."""


def source_files(root: Path) -> Files:
    """Return the auditor's own files for the zip, and the licence."""
    files = {"auditor/LICENSE": (root / "LICENSE").read_bytes()}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*")):
            relative = path.relative_to(root)
            if path.is_file() and path.suffix != ".pyc" and not _is_left_out(relative):
                files[relative.as_posix()] = path.read_bytes()
    return files


def _is_left_out(path: Path) -> bool:
    hidden = any(part.startswith(".") or part == "__pycache__" for part in path.parts)
    return hidden or any(path.is_relative_to(name) for name in LEFT_OUT)
