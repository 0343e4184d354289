"""Print for the user: results on stdout; sentences and logs on stderr, each message as one printable line, without
session tokens.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from threading import Timer
from types import TracebackType
from typing import Any, Final, TextIO

from auditor.logs import clean, quiet_sdk, speaks_no_secret
from auditor.model.json_codec import plain

log = logging.getLogger(__name__)

PATIENCE: Final = 2.0
"""Seconds without an answer after which a command says what it waits for."""
_LEVELS: Final = (logging.WARNING, logging.INFO, logging.DEBUG)
_ALL: Final = 3
"""The number of -v from which on the SDKs' logs are shown, too."""
OURS: Final = "auditor"
_Exception = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


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

    quiet = False
    progress = True


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


class _Spoken(logging.StreamHandler[Any]):
    """Writes to stderr. A warning of our own says more than that no server answers, and so replaces that sentence."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING and _is_ours(record):
            heard()
        status.clear()
        super().emit(record)


class Plain(logging.Formatter):
    """Formats a log record as one printable line, and a traceback as several, all cleaned of secrets. Each line of a
    record of our own begins with "auditor: ", as the command's other sentences do.
    """

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return "\n".join(f"{OURS}: {line}" for line in text.split("\n")) if _is_ours(record) else text

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = clean(record.message)
        plain = _is_ours(record) and record.levelno >= logging.WARNING
        return record.message if plain else super().formatMessage(record)

    def formatException(self, ei: _Exception) -> str:  # noqa: N802
        return "\n".join(map(clean, super().formatException(ei).split("\n")))


def _is_ours(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] == OURS


def ours_or_warning(record: logging.LogRecord) -> bool:
    """Return True for a record of our own, and for a warning or error of the SDKs."""
    return record.levelno >= logging.WARNING or _is_ours(record)


def log_to_stderr(verbose: int) -> None:
    """Start to log to stderr. verbose: the number of -v: 0 for warnings, 1 for our own steps too, 2 for their details,
    3 for the SDKs' debug logs too, without those of requests and answers.
    """
    handler = _Spoken(sys.stderr)
    handler.addFilter(ours_or_warning if verbose < _ALL else speaks_no_secret)
    handler.setFormatter(Plain("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=_LEVELS[min(verbose, 2)])
    if not verbose:
        quiet_sdk()
