"""The first word of a command comes before its resources are opened, and a warning when nothing answers."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from auditor.cli import output
from auditor.cli.run_targets import each_target
from auditor.model.target import parse_target
from tests.cli.conftest import Run
from tests.support.servers.stub import StubServer


@pytest.mark.parametrize("terminal", [True, False])
async def test_first_word_comes_before_the_resources_are_opened(
    terminal: bool,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.INFO, "auditor")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    seen: list[tuple[str, str, list[str]]] = []

    @asynccontextmanager
    async def opening() -> AsyncIterator[None]:
        said = capsys.readouterr()
        seen.append((said.out, said.err, caplog.messages))
        yield

    async def one(*_: object) -> int:
        return 0

    targets = [parse_target("s3://bucket-a/p"), parse_target("s3://bucket-b")]
    assert await each_target(targets, opening(), one, verb="audited", kept="nothing") == 0
    words = "asking about s3://bucket-a/p and 1 more"
    assert seen == [("", f"auditor: {words}\n" if terminal else "", [] if terminal else [words])]


def test_each_target_that_does_not_answer_is_named(
    run: Run, stub: StubServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(output, "PATIENCE", 0.05)
    stub.put("audited", "a", b"x")
    told, named = threading.Event(), "still asking about s3://audited"

    def silent(operation: str, key: str, nth: int) -> None:
        for _ in range(1500):
            if told.wait(0.02) or any(named in line for line in caplog.messages):
                break
        told.set()

    stub.faults = [silent]
    assert run("audit", "s3://audited", "--only", "O02", "--endpoint-url", stub.url)[0] == 0
    (line,) = [line for line in caplog.records if named in line.getMessage()]
    assert line.levelname == "WARNING"
