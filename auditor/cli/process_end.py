"""End the process after a signal, even if a thread waits for a server that does not answer."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import Final

LONGEST: Final = 4.5
"""Seconds after the first signal at which the process ends at the latest. The end damages no saved result: files and
checkpoints are whole at any moment.
"""

_caught = threading.Event()


class GivenUp(BaseException):
    """A signal ended the coroutine of a command in its middle."""


def end_soon() -> None:
    """Start a timer that ends the process with exit code 4 after LONGEST seconds, if it still runs then."""
    if not _caught.is_set():
        _caught.set()
        # Not a task: the loop may then be closed, or wait for a thread whose request has no answer.
        timer = threading.Timer(LONGEST, _give_up)
        timer.daemon = True
        timer.start()


def leave(code: int) -> int:
    """Return `code`, the exit code of the process. After a signal, if threads would keep the process alive for minutes,
    end the process at once instead.
    """
    if _caught.is_set() and any(not thread.daemon for thread in threading.enumerate()[1:]):
        _exit(code)
    return code


def _give_up() -> None:
    with suppress(OSError):
        os.write(2, b"auditor: given up: a server does not answer; finished work is kept\n")
    _exit(4)


def _exit(code: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
