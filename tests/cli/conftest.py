"""The command line under tests: a machine under load is no silence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from auditor.cli import output
from auditor.cli.main import main

Run = Callable[..., tuple[int, str, str]]
"""Runs a command with its arguments, and returns its exit code, stdout and stderr."""


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "PATIENCE", 600.0)
    for name, value in {"quiet": False, "progress": True}.items():  # the flags of the last command
        monkeypatch.setattr(output.talk, name, value)


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run one command in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        try:
            code = main(arguments)
        except SystemExit as ended:  # argparse ends the process so
            code = int(ended.code or 0)
        captured = capfd.readouterr()
        return code, captured.out, captured.err

    return call
