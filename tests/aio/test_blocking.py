"""A coroutine that is run to its end from a caller that blocks, with and without a loop in its thread."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from contextvars import ContextVar

import pytest

from auditor.offline.library.blocking import run_blocking

WORD: ContextVar[str] = ContextVar("word")


async def thread_and_word() -> tuple[str, str]:
    await asyncio.sleep(0)
    return threading.current_thread().name, WORD.get()


async def failing() -> None:
    raise LookupError("of the coroutine")


def test_without_a_loop_it_runs_in_the_callers_thread() -> None:
    WORD.set("here")
    assert run_blocking(thread_and_word) == (threading.current_thread().name, "here")
    with pytest.raises(LookupError):
        run_blocking(failing)


async def test_with_a_loop_it_runs_in_another_thread_and_in_the_same_context() -> None:
    WORD.set("there")
    assert run_blocking(thread_and_word) == ("auditor-blocking", "there")
    with pytest.raises(LookupError):
        run_blocking(failing)
    assert "auditor-blocking" not in [thread.name for thread in threading.enumerate()]


def test_an_interrupt_where_a_loop_runs_cancels_the_coroutine_and_waits_for_its_end() -> None:
    ended: list[str] = []

    async def hanging() -> None:
        threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()  # to the main thread
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.1)
            ended.append("saved")

    async def notebook() -> None:
        run_blocking(hanging)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(notebook())
    finally:
        loop.close()
        signal.signal(signal.SIGINT, before)
    assert ended == ["saved"]
