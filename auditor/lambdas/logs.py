"""Write the logs of a Lambda function: one JSON object on each line, with run, bucket, request ID and start."""

from __future__ import annotations

import json
import logging
import sys
import threading
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from auditor.logs import LONGEST, LONGEST_LABEL, clean, labels, quiet_sdk

LEVEL: Final = "AUDITOR_LOG_LEVEL"
LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
STACK_LINES: Final = 40

log = logging.getLogger(__name__)


class JsonLines(logging.Formatter):
    """Formats a log record as a JSON object: timestamp (ISO 8601 in UTC), level, logger, message, labels, stack."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "timestamp": moment.replace("+00:00", "Z"),
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
        return json.dumps(line)  # ASCII, so no character ends the line


def _message(record: logging.LogRecord) -> str:
    """Return the record's message with its arguments put in; without them if they do not fit."""
    try:
        return record.getMessage()
    except Exception:
        return str(record.msg)


def _text(error: BaseException) -> str:
    """Return the error's text; a fixed text if the error's own __str__ fails."""
    try:
        return str(error)
    except Exception:
        return "the error has no readable text"


def _stack(error: BaseException) -> list[str]:
    """Return the lines of the error's stack, the innermost frame last. A long stack loses its first lines."""
    lines = [line for entry in traceback.format_exception(error) for line in entry.rstrip("\n").split("\n")]
    return [clean(line)[:LONGEST_LABEL] for line in lines[-STACK_LINES:]]


class _Stderr(logging.StreamHandler[Any]):
    """A log handler that writes to sys.stderr, looked up for each record, because Lambda's runtime replaces that
    stream.
    """

    def __init__(self) -> None:
        super().__init__(sys.stderr)

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def set_up(environ: Mapping[str, str]) -> None:
    """Begin to write all logs as lines of JSON, those of libraries and Python's warnings included. A second call does
    nothing.

    The auditor's own loggers have the level that AUDITOR_LOG_LEVEL names, or INFO. Libraries log only warnings and
    errors, because at DEBUG they log headers, which hold metadata values and signatures.
    """
    root = logging.getLogger()
    if any(isinstance(handler, _Stderr) for handler in root.handlers):
        return
    for other in list(root.handlers):  # the runtime client's handler would write each line a second time
        root.removeHandler(other)
    handler = _Stderr()
    handler.setFormatter(JsonLines())
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    quiet_sdk()
    logging.captureWarnings(True)
    logging.raiseExceptions = False
    threading.excepthook = _log_of_thread
    sys.unraisablehook = _log_unraisable
    name = environ.get(LEVEL, "").upper() or "INFO"
    logging.getLogger("auditor").setLevel(name if name in LEVELS else "INFO")
    if name not in LEVELS:
        log.warning("%s is %r: give %s; INFO until then", LEVEL, name[:100], " or ".join(LEVELS))


def _log_of_thread(given: threading.ExceptHookArgs) -> None:
    if given.exc_value is not None:
        log.error("a thread ended with an error", exc_info=given.exc_value)


def _log_unraisable(given: sys.UnraisableHookArgs) -> None:
    log.error("%s", given.err_msg or "an error that could not be raised", exc_info=given.exc_value)
