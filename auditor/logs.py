"""Labels of log lines (run, bucket, request, hop), and the cleaning of text for logs.

Labels travel in context variables: of several runs and messages at once each line names its own.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from auditor.text import harmless

LONGEST: Final = 2000
"""Characters of a message; keys are part of some, and may have 1,024 bytes."""

LONGEST_LABEL: Final = 256
_TOKEN: Final = re.compile(r"(x-amz-security-token['\"]?\s*[:=,]\s*(?:b?['\"])?)[^\s'\"\\&]+", re.IGNORECASE)
_labels: ContextVar[Mapping[str, str | int]] = ContextVar("auditor_log_labels")


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


def quiet_sdk() -> None:
    """It warns of every header that it cannot parse, an object's own Expires for one: that is the object's affair."""
    logging.getLogger("botocore").setLevel(logging.ERROR)
