"""The first word of a command comes before its first call, and a warning when nothing answers."""

from __future__ import annotations

import logging
import threading

import pytest

from auditor.cli import output
from tests.cli.conftest import Run
from tests.support.servers.stub import StubServer


def test_each_target_that_does_not_answer_is_named(
    run: Run, stub: StubServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "auditor")
    monkeypatch.setattr(output, "PATIENCE", 0.05)
    stub.put("audited", "a", b"x")
    told, named = threading.Event(), "still asking about s3://audited"

    def silent(operation: str, key: str, nth: int) -> None:
        assert "asking about s3://audited" in caplog.messages  # before the first call
        for _ in range(1500):
            if told.wait(0.02) or any(named in line for line in caplog.messages):
                break
        told.set()

    stub.faults = [silent]
    assert run("audit", "s3://audited", "--only", "O02", "--endpoint-url", stub.url)[0] == 0
    (line,) = [line for line in caplog.records if named in line.getMessage()]
    assert line.levelname == "WARNING"
