"""The first word of a command comes before its resources are opened, and a warning when nothing answers."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from auditor.cli import output
from auditor.cli.output import Silence, say
from auditor.cli.run_targets import each_target
from auditor.model.target import Target, parse_target


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


class Timers:
    """Timers that come when the test says so."""

    def __init__(self) -> None:
        self.due: list[Callable[[], object]] = []
        self.seconds: list[float] = []
        self.daemon = False

    def __call__(self, seconds: float, function: Callable[..., object], arguments: tuple[object, ...]) -> Timers:
        self.seconds.append(seconds)
        self._next = lambda: function(*arguments)
        return self

    def start(self) -> None:
        assert self.daemon, "a command must not wait for the timer"
        self.due.append(self._next)

    def cancel(self) -> None:
        self.due.clear()


async def test_each_target_that_does_not_answer_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    timers = Timers()
    monkeypatch.setattr(output, "silence", Silence(timers))  # type: ignore[arg-type]

    @asynccontextmanager
    async def opening() -> AsyncIterator[None]:
        timers.due.pop()()
        yield

    async def one(target: Target, *_: object) -> int:
        if target.bucket == "bucket-b":
            timers.due.pop()()
        say("an answer")
        assert not timers.due
        return 0

    targets = [parse_target(f"s3://bucket-{name}") for name in "abc"]
    assert await each_target(targets, opening(), one, verb="audited", kept="nothing") == 0
    assert [line.partition(", ")[2] for line in caplog.messages] == [
        "still asking about s3://bucket-a and 2 more",
        "still asking about s3://bucket-b",
    ]
    assert {line.levelname for line in caplog.records} == {"WARNING"}
    assert (set(timers.seconds), timers.due) == ({output.PATIENCE}, [])
