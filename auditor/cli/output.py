"""Print for the user: sentences on stderr, JSON documents on stdout."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from threading import Timer
from typing import Final, TextIO

from auditor.logs import clean
from auditor.model.json_codec import plain

log = logging.getLogger(__name__)

PATIENCE: Final = 2.0
"""Seconds without an answer after which a command says what it waits for."""


class Silence:
    """The wait for a server's answer: warns the user when it takes some seconds. timer: makes a threading.Timer, which
    works even if the event loop is busy.
    """

    def __init__(self, timer: Callable[..., Timer] = Timer) -> None:
        self._make = timer
        self._timer: Timer | None = None

    def begin(self, sentence: str, seconds: float) -> None:
        """Warn the user after `seconds`, unless end() is called before. sentence: names the work ("asking ..")."""
        self.end()
        self._timer = self._make(seconds, log.warning, ("no answer for %g seconds, still %s", seconds, sentence))
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


silence = Silence()


class StatusLine:
    """The last line of a terminal, which shows the progress of long work until other text takes its place."""

    def __init__(self) -> None:
        self._stream: TextIO | None = None

    def show(self, stream: TextIO, text: str) -> None:
        """Show the text in place of the line before. stream: the terminal. text: safe to print, narrower than it."""
        self._stream = stream
        stream.write(f"\r{text}\x1b[K")
        stream.flush()

    def clear(self) -> None:
        """Remove the line, so that other text can begin there."""
        if self._stream is not None:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._stream = None


status = StatusLine()


class Talk:
    """The talk that the user wants. quiet: only results, warnings and errors. progress: the progress of long work."""

    def __init__(self) -> None:
        self.quiet = False
        self.progress = True


talk = Talk()


def say(sentence: str) -> None:
    """Print one line on stderr, after "auditor: ". Unprintable characters are escaped, and secrets hidden."""
    silence.end()
    status.clear()
    sys.stderr.write(f"auditor: {clean(sentence)}\n")


def remark(sentence: str) -> None:
    """Print a line on stderr as say() does, unless the user wants quiet: it is neither warning nor error."""
    if not talk.quiet:
        say(sentence)


def first_word(sentence: str, *, longer: float = 0.0) -> None:
    """Tell the user what begins, before a first slow call: on a terminal as a line on stderr, elsewhere only in the
    log. Then warn as expect() does if no server answers for PATIENCE + `longer` seconds.
    """
    if sys.stderr.isatty() and not talk.quiet:
        say(sentence)
    else:
        log.info("%s", sentence)
    expect(sentence, longer=longer)


def expect(sentence: str, *, longer: float = 0.0) -> None:
    """Warn on stderr if no server answers for PATIENCE + `longer` seconds from now. sentence: names the work ("asking
    ..").

    There is no warning if the command prints a sentence, shows an answer in its progress, or ends before that time.
    """
    silence.begin(sentence, PATIENCE + longer)


def heard() -> None:
    """Cancel the warning of expect(), because a server answered."""
    silence.end()


def print_json(value: object) -> None:
    """Print a JSON document on one line of stdout, because a command can print several documents. value: of Structs,
    dicts and lists.
    """
    print_text(json.dumps(plain(value)) + "\n")


def print_text(text: str) -> None:
    """Print a result on stdout at once. text: whole lines, safe to print."""
    status.clear()
    sys.stdout.write(text)
    sys.stdout.flush()


def print_result(form: str, document: object, text: Callable[[], str]) -> None:
    """Print a result in the form that --format names. document: for "json". text: makes the lines for other forms."""
    if form == "json":
        print_json(document)
    else:
        print_text(text())
