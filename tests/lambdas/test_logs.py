"""A function's log: only JSON lines, each with its labels."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from contextvars import copy_context
from typing import Any

import pytest

from auditor.lambdas.logs import STACK_LINES
from auditor.logs import LONGEST, LONGEST_LABEL, bound, labels
from tests.support.log_lines import logged
from tests.support.paths import ROOT

RUN = "20260102T030405Z-0a1b2c"


def line(message: str, *args: object, error: BaseException | None = None) -> dict[str, Any]:
    """The line of one warning."""
    info = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("auditor.test", logging.WARNING, __file__, 1, message, args, info)
    record.created = 1767323045.678
    with logged() as lines:  # without pytest's handlers, because it cannot report a lone surrogate
        logging.getLogger("auditor").handlers[-1].handle(record)
    (found,) = lines
    return found


def test_a_line_says_when_how_bad_who_and_what() -> None:
    assert line("%d objects", 3) == {
        "timestamp": "2026-01-02T03:04:05.678Z",
        "level": "WARNING",
        "logger": "auditor.test",
        "message": "3 objects",
    }


def test_labels_add_up_inside_and_are_gone_outside() -> None:
    with bound(run=RUN, bucket="photos", hop=0, requestId=None):
        with bound(bucket="archive", message=""):
            assert labels() == {"run": RUN, "bucket": "archive", "hop": 0}
        assert line("x")["bucket"] == "photos"
    assert labels() == {}


async def test_what_runs_at_once_is_labelled_apart() -> None:
    async def work(name: str) -> list[Any]:
        found = []
        with bound(run=name):
            for _ in range(3):
                await asyncio.sleep(0)
                found.append(line("x")["run"])
            context = copy_context()
        loop = asyncio.get_running_loop()
        found.append((await loop.run_in_executor(None, context.run, labels))["run"])
        return found

    assert await asyncio.gather(*(work(name) for name in "abc")) == [[name] * 4 for name in "abc"]
    assert "run" not in line("x")


def test_no_text_makes_a_line_of_its_own_or_a_long_one() -> None:
    for text in (
        'a"}\n{"level": "ERROR", "message": "forged"}',
        "carriage\rreturn\x1b[2J",
        "turned \u202e around \u2028 \u0085",
        "half \ud800 of a pair",
        "\\",
    ):
        with bound(bucket=text):
            found = line("key %s", text)
        assert (found["level"], found["message"][:4]) == ("WARNING", "key "), text
        assert found["message"].isprintable(), text
        assert found["bucket"].isprintable(), text
    with bound(bucket="b" * 5000):
        found = line("%s", "\n" * 5000)
    assert (len(found["message"]), len(found["bucket"])) == (LONGEST, LONGEST_LABEL)


def deep(levels: int) -> None:
    """Fail after so many calls by two lines in turn: the traceback of one line that calls itself is abbreviated."""
    if not levels:
        raise ValueError("as told\nX-Amz-Security-Token: secret")
    if levels % 2:
        deep(levels - 1)
    deep(levels - 1)


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def test_an_exception_is_fields_of_its_line() -> None:
    with pytest.raises(ValueError, match="as told") as raised:
        deep(60)
    found = line("it failed", error=raised.value)
    assert (found["message"], found["errorType"]) == ("it failed", "ValueError")
    assert found["errorMessage"] == "as told\\nX-Amz-Security-Token: ***"
    assert len(found["stack"]) == STACK_LINES
    assert "secret" not in json.dumps(found)
    assert line("x", error=MuteError())["errorType"] == "MuteError"


def said(program: str, **environ: str) -> list[dict[str, Any]]:
    """The log of a process that runs `program` after set_up(): every line must be JSON."""
    start = "import asyncio, logging, os, sys, threading, warnings\nfrom auditor.lambdas import logs\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{start}logging.basicConfig()\nlogs.set_up(os.environ)\n{program}"],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == ""
    return [json.loads(text) for text in done.stderr.splitlines()]


def messages(program: str, **environ: str) -> list[str]:
    return [found["message"] for found in said(program, **environ)]


LEVELS = "log = logging.getLogger('auditor.x')\nlog.debug('debug'); log.info('info'); log.warning('warning')\n"


def test_the_level_is_the_environments_and_each_line_comes_once() -> None:
    """Libraries never tell of headers, whatever the level."""
    headers = "for name in ('botocore', 'aiobotocore', 'urllib3'): logging.getLogger(f'{name}.x').debug('x-amz-meta-a')"
    expires = "logging.getLogger('botocore.parsers').warning('Expires: gibberish')\n"
    for level, expected in (("", ["info", "warning"]), ("debug", ["debug", "info", "warning"]), ("ERROR", [])):
        program = f"logs.set_up(os.environ)\n{LEVELS}{expires}{headers}"
        assert messages(program, AUDITOR_LOG_LEVEL=level) == expected, level
    first, *others = messages(LEVELS, AUDITOR_LOG_LEVEL="LOUD\n")
    assert "AUDITOR_LOG_LEVEL is 'LOUD\\n': give DEBUG or INFO or WARNING or ERROR" in first
    assert others == ["info", "warning"]


def test_what_is_not_logged_but_said_is_a_line_too() -> None:
    program = """
warnings.warn("old\\nthing", RuntimeWarning)
def fail(): raise ValueError("in a thread")
thread = threading.Thread(target=fail); thread.start(); thread.join()
class Left:
    def __del__(self): raise ValueError("at the end")
Left()
async def forgotten():
    asyncio.get_running_loop().create_task(broken())
    await asyncio.sleep(0.01)
async def broken(): raise ValueError("in a task")
asyncio.run(forgotten())
logging.getLogger("urllib3").warning("%d", "no number")
"""
    found = said(program)
    assert [one["level"] for one in found] == ["WARNING", "ERROR", "ERROR", "ERROR", "WARNING"]
    assert "old\\nthing" in found[0]["message"]
    assert [one.get("errorMessage") for one in found[1:4]] == ["in a thread", "at the end", "in a task"]


def test_a_stderr_that_is_replaced_is_followed() -> None:
    program = """
class Elsewhere:
    def __getattr__(self, name): return getattr(sys.__stderr__, name)
    def write(self, text): return sys.__stderr__.write(text.replace("before", "after"))
sys.stderr = Elsewhere()
logging.getLogger("auditor").info("before")
"""
    assert messages(program) == ["after"]
