"""Label log lines with the run, the bucket, the request or the invocation that they belong to, and clean text for logs.

The labels are in a context variable: each line has the labels of its own task, even if many tasks run at once.
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
"""Largest number of characters of a logged message; the rest is cut. Some messages quote object keys, which may have
1,024 bytes.
"""

LONGEST_LABEL: Final = 256
_TOKEN: Final = re.compile(r"(x-amz-security-token['\"]?\s*[:=,]\s*(?:b?['\"])?)[^\s'\"\\&]+", re.IGNORECASE)
_labels: ContextVar[Mapping[str, str | int]] = ContextVar("auditor_log_labels")


def clean(text: str) -> str:
    """Return the text as one printable line in which AWS session tokens are hidden."""
    return _TOKEN.sub(r"\1***", harmless(text))


def labels() -> Mapping[str, str | int]:
    """Return the labels of log lines that the present task writes."""
    return _labels.get({})


@contextmanager
def bound(**values: str | int | None) -> Iterator[None]:
    """Label the log lines of this `with` block, and of the tasks that it starts. A value of None or "" is left out."""
    new = {name: _bounded(value) for name, value in values.items() if value is not None and value != ""}
    token = _labels.set({**labels(), **new})
    try:
        yield
    finally:
        _labels.reset(token)


def _bounded(value: str | int) -> str | int:
    return value if isinstance(value, int) else clean(value)[:LONGEST_LABEL]


def quiet_sdk() -> None:
    """Silence botocore's warnings: it warns of every header that it cannot parse, such as an object's own Expires."""
    logging.getLogger("botocore").setLevel(logging.ERROR)
