"""Write logs to stderr: each message as one printable line, without session tokens."""

from __future__ import annotations

import logging
import sys
from types import TracebackType
from typing import Final

from auditor.logs import clean, quiet_sdk

_LEVELS: Final = (logging.WARNING, logging.INFO, logging.DEBUG)
_ALL: Final = 3
"""The number of -v from which on the SDKs' logs are shown, too."""
_Exception = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class Plain(logging.Formatter):
    """Formats a log record as one printable line, and a traceback as several. Both are cleaned of secrets."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = clean(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: _Exception) -> str:  # noqa: N802
        return "\n".join(map(clean, super().formatException(ei).split("\n")))


def ours_or_warning(record: logging.LogRecord) -> bool:
    """Return True for a record of our own, and for a warning or error of the SDKs."""
    return record.levelno >= logging.WARNING or record.name.partition(".")[0] == "auditor"


def set_up(verbose: int) -> None:
    """Start to log to stderr. verbose: the number of -v: 0 for warnings, 1 for our own steps too, 2 for their details,
    3 for the SDKs' debug logs too.
    """
    handler = logging.StreamHandler(sys.stderr)
    if verbose < _ALL:
        handler.addFilter(ours_or_warning)
    handler.setFormatter(Plain("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=_LEVELS[min(verbose, 2)])
    if not verbose:
        quiet_sdk()
