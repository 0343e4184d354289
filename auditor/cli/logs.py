"""Write logs to stderr: each message as one printable line, without session tokens."""

from __future__ import annotations

import logging
import sys
from types import TracebackType
from typing import Any, Final

from auditor.cli.output import heard, status
from auditor.logs import clean, quiet_sdk, speaks_no_secret

_LEVELS: Final = (logging.WARNING, logging.INFO, logging.DEBUG)
_ALL: Final = 3
"""The number of -v from which on the SDKs' logs are shown, too."""
OURS: Final = "auditor"
_Exception = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


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


def set_up(verbose: int) -> None:
    """Start to log to stderr. verbose: the number of -v: 0 for warnings, 1 for our own steps too, 2 for their details,
    3 for the SDKs' debug logs too, without those of requests and answers.
    """
    handler = _Spoken(sys.stderr)
    handler.addFilter(ours_or_warning if verbose < _ALL else speaks_no_secret)
    handler.setFormatter(Plain("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=_LEVELS[min(verbose, 2)])
    if not verbose:
        quiet_sdk()
