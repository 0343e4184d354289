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
_NAME: Final = (
    r"(?:secret_?access_?key|secret_?key|session_?token|security[-_]?token|bearer[-_]?token|metadata-token|external_?id"
    r"|web_?identity_?token|saml_?assertion|(?:access|refresh|id)_?token|client_?secret|['\"](?:token|authorization)['\"])"
)
_SECRET: Final = re.compile(
    rf"({_NAME}(?:\\*['\"])?(?:\s+[\w:.-]+=\\*['\"][^'\"<>]*['\"])?\s*[:=,>]\s*(?:<!\[CDATA\[)?(?:b?\\*['\"])?(?:Bearer\s+)?)"
    r"(?:[^\s'\"\\&<>]|\\+[/u]|&#?\w{1,8};)+",
    re.IGNORECASE,
)
"""The name of a secret in a header, a form, XML, JSON or Python's notation, and the secret itself."""
_STEPS: Final = ("configprovider", "credentials", "httpsession", "loaders", "regions", "retries", "retryhandler")
_SPEAKING: Final = (
    *("asyncio", "auditor", "urllib3"),
    *(f"{sdk}.{module}" for sdk in ("botocore", "aiobotocore") for module in _STEPS),
)
"""The loggers that may log below WARNING. The SDKs' other loggers log requests, answers and bodies, in which STS, SSO
and the servers of containers and instances carry secrets.
"""
_labels: ContextVar[Mapping[str, str | int]] = ContextVar("auditor_log_labels")


def clean(text: str) -> str:
    """Return the text as one printable line in which the values of secrets are hidden: those that stand after their
    name.
    """
    return _SECRET.sub(r"\1***", harmless(text))


def speaks_no_secret(record: logging.LogRecord) -> bool:
    """Return True for a record that may be written: a warning, or one of a logger that logs no request, no answer."""
    return record.levelno >= logging.WARNING or any(
        record.name == name or record.name.startswith(f"{name}.") for name in _SPEAKING
    )


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
