"""Logs on stderr: what servers and keys say stays one line and moves no cursor, and a session's token is not shown."""

from __future__ import annotations

import logging
import re
import sys
from types import TracebackType
from typing import Final

from auditor.text import harmless

_LEVELS: Final = (logging.WARNING, logging.INFO, logging.DEBUG)
_TOKEN: Final = re.compile(r"(x-amz-security-token['\"]?\s*[:=,]\s*(?:b?['\"])?)[^\s'\"\\&]+", re.IGNORECASE)
_Exception = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class Plain(logging.Formatter):
    """Messages in one printable line; tracebacks in printable lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = _clean(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: _Exception) -> str:  # noqa: N802
        return "\n".join(map(_clean, super().formatException(ei).split("\n")))


def _clean(text: str) -> str:
    return _TOKEN.sub(r"\1***", harmless(text))


def set_up(verbose: int) -> None:
    """verbose: how often -v was given."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Plain("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=_LEVELS[min(verbose, 2)])
    if not verbose:
        # It warns of every header that it cannot parse, an object's own Expires for one: that is the object's affair.
        logging.getLogger("botocore").setLevel(logging.ERROR)
