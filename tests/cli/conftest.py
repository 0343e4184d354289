"""The command line under tests: a machine under load is no silence."""

from __future__ import annotations

import pytest

from auditor.cli import output


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "PATIENCE", 600.0)
