"""A project of a few lines to build packages from."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.options import Options


@pytest.fixture
def options(tmp_path: Path) -> Options:
    root = tmp_path / "root"
    for name in (
        "auditor/rules/access/o01_everyone_control.py",
        "auditor/cli/main.py",
        "handlers/audit.py",
        "deploy/build.py",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"# {name}\n")
    (root / "requirements.txt").write_text("sdk==1\n")
    (root / "LICENSE").write_text("do what you like\n")
    return Options("arm64", "aarch64-manylinux_2_34", tmp_path / "out" / "f.zip", root=root)
