"""Logs of a function: one JSON object a line on stderr, labelled with the run, bucket, request and hop it belongs to.

Labels travel in context variables: of several runs and messages at once each line names its own.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final

from auditor.text import harmless

LEVEL: Final = "AUDITOR_LOG_LEVEL"
LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
LONGEST: Final = 2000
"""Characters of a message; keys are part of some, and may have 1,024 bytes."""
LONGEST_LABEL: Final = 256
STACK_LINES: Final = 40

_TOKEN: Final = re.compile(r"(x-amz-security-token['\"]?\s*[:=,]\s*(?:b?['\"])?)[^\s'\"\\&]+", re.IGNORECASE)

_labels: ContextVar[Mapping[str, str | int]] = ContextVar("auditor_log_labels")

log = logging.getLogger(__name__)


def clean(text: str) -> str:
    """One printable line, whatever a server or a key says in it, and no session's token."""
    return _TOKEN.sub(r"\1***", harmless(text))


def labels() -> Mapping[str, str | int]:
    """What the present task belongs to."""
    return _labels.get({})


@contextmanager
def bound(**given: str | int | None) -> Iterator[None]:
    """Label what is logged inside, tasks that are begun there included. None and empty texts label nothing."""
    new = {name: _bounded(value) for name, value in given.items() if value is not None and value != ""}
    token = _labels.set({**labels(), **new})
    try:
        yield
    finally:
        _labels.reset(token)


def _bounded(value: str | int) -> str | int:
    return value if isinstance(value, int) else clean(value)[:LONGEST_LABEL]


class JsonLines(logging.Formatter):
    """timestamp (ISO 8601, UTC), level, logger, message, the labels, and the stack of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "timestamp": _iso(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": clean(_message(record))[:LONGEST],
            **labels(),
        }
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line["errorType"] = type(error).__name__
            line["errorMessage"] = clean(_text(error))[:LONGEST]
            line["stack"] = _stack(error)
        return json.dumps(line)  # ASCII: no character of it can end the line


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _message(record: logging.LogRecord) -> str:
    """A library's wrong arguments shall not cost the line."""
    try:
        return record.getMessage()
    except Exception:
        return str(record.msg)


def _text(error: BaseException) -> str:
    """An error whose own words fail shall not cost the line either."""
    try:
        return str(error)
    except Exception:
        return "it cannot be put into words"


def _stack(error: BaseException) -> list[str]:
    """Innermost last; where it is too long the outermost frames are left out."""
    lines = [line for entry in traceback.format_exception(error) for line in entry.rstrip("\n").split("\n")]
    return [clean(line)[:LONGEST_LABEL] for line in lines[-STACK_LINES:]]


class _Stderr(logging.StreamHandler[Any]):
    """To what is stderr at the time: the runtime client puts one of its own in its place."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def set_up(environ: Mapping[str, str]) -> None:
    """From now on all that is logged in this process is JSON lines, libraries and warnings included. A second call
    does nothing.

    Our own loggers follow AUDITOR_LOG_LEVEL (INFO). Libraries warn, whatever it says: their DEBUG has headers in it,
    metadata values and signatures among them.
    """
    root = logging.getLogger()
    if any(isinstance(handler, _Stderr) for handler in root.handlers):
        return
    for other in list(root.handlers):  # the runtime client's would write each line once more, in its own form
        root.removeHandler(other)
    handler = _Stderr()
    handler.setFormatter(JsonLines())
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    quiet_sdk()
    logging.captureWarnings(True)
    logging.raiseExceptions = False
    threading.excepthook = _of_thread
    sys.unraisablehook = _of_nobody
    name = environ.get(LEVEL, "").upper() or "INFO"
    logging.getLogger("auditor").setLevel(name if name in LEVELS else "INFO")
    if name not in LEVELS:
        log.warning("%s is %r: give %s; INFO until then", LEVEL, name[:100], " or ".join(LEVELS))


def quiet_sdk() -> None:
    """It warns of every header that it cannot parse, an object's own Expires for one: that is the object's affair."""
    logging.getLogger("botocore").setLevel(logging.ERROR)


def _of_thread(given: threading.ExceptHookArgs) -> None:
    if given.exc_value is not None:
        log.error("a thread ended with an error", exc_info=given.exc_value)


def _of_nobody(given: sys.UnraisableHookArgs) -> None:
    log.error("%s", given.err_msg or "an error that nobody could be told of", exc_info=given.exc_value)
