"""Write logs to stderr: each message as one printable line, without session tokens."""

from __future__ import annotations

import logging
import sys
from types import TracebackType
from typing import Final

from auditor.logs import clean, quiet_sdk

_LEVELS: Final = (logging.WARNING, logging.INFO, logging.DEBUG)
_Exception = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class Plain(logging.Formatter):
    """Formats a log record as one printable line, and a traceback as several. Both are cleaned of secrets."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = clean(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: _Exception) -> str:  # noqa: N802
        return "\n".join(map(clean, super().formatException(ei).split("\n")))


def set_up(verbose: int) -> None:
    """Start to log to stderr. verbose: the number of -v: 0 for warnings, 1 for info too, 2 for debug too."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Plain("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=_LEVELS[min(verbose, 2)])
    if not verbose:
        quiet_sdk()
