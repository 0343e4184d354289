"""Print for the user: sentences on stderr, JSON documents on stdout."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Mapping
from threading import Timer
from typing import Any, Final

from auditor.text import harmless

log = logging.getLogger(__name__)

PATIENCE: Final = 2.0
"""Seconds without an answer after which a command says what it waits for."""


class Silence:
    """Warns the user if no server answers for some seconds. timer: a threading.Timer; the event loop may be busy."""

    def __init__(self, timer: Callable[..., Timer] = Timer) -> None:
        self._make = timer
        self._timer: Timer | None = None

    def begin(self, sentence: str, seconds: float) -> None:
        """Warn after so many seconds, unless end() is called before. sentence: the work, such as "asking .."."""
        self.end()
        self._timer = self._make(seconds, log.warning, ("no answer for %g seconds, still %s", seconds, sentence))
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


silence = Silence()


def say(sentence: str) -> None:
    """Print one line on stderr, after "auditor: ". Unprintable characters are escaped."""
    silence.end()
    sys.stderr.write(f"auditor: {harmless(sentence)}\n")


def first_word(sentence: str, *, longer: float = 0.0) -> None:
    """Tell the user on a terminal what begins, before a first slow call; elsewhere, only log it. longer: as in
    expect().
    """
    if sys.stderr.isatty():
        say(sentence)
    else:
        log.info("%s", sentence)
    expect(sentence, longer=longer)


def expect(sentence: str, *, longer: float = 0.0) -> None:
    """Warn on stderr if no server answers for PATIENCE + `longer` seconds from now. Nothing is warned of if the command
    says something, shows progress or ends before. sentence: names the work, such as "asking ..".
    """
    silence.begin(sentence, PATIENCE + longer)


def heard() -> None:
    """Note that a server answered: the warning of expect() is not needed."""
    silence.end()


def print_json(value: Mapping[str, Any]) -> None:
    """Print a JSON document on one line of stdout, because a command can print several documents."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()
