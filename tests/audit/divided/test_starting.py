"""A process that audits ranges runs the code of this package, and no file of the working directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from auditor.audit.divided.starting import ProcessStarter


async def test_module_in_the_working_directory_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("json", "runpy", "auditor"):
        (tmp_path / f"{name}.py").write_text(f"open('{name} was run', 'w')\nraise SystemExit(9)\n")
    monkeypatch.chdir(tmp_path)
    process = await ProcessStarter().next()
    assert process.stdin is not None
    process.stdin.close()  # the process ends with it
    assert await process.wait() == 0
    assert not [name for name in os.listdir(tmp_path) if name.endswith("was run")]
