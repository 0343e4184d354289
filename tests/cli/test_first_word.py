"""The first word of a command comes before its resources are opened."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from auditor.cli.each_target import each_target
from auditor.model.target import parse_target


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
