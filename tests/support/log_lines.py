"""Our log lines, read like a function's log."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from auditor.lambdas.logs import JsonLines


class _Lines(logging.Handler):
    def __init__(self, lines: list[dict[str, Any]]) -> None:
        super().__init__()
        self.setFormatter(JsonLines())
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(json.loads(self.format(record)))


@contextmanager
def logged(level: int = logging.INFO) -> Iterator[list[dict[str, Any]]]:
    """Collect the lines of all our loggers from this level on, within the block."""
    lines: list[dict[str, Any]] = []
    logger, handler = logging.getLogger("auditor"), _Lines(lines)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield lines
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)
