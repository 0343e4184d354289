"""Spans of time and shares, as a person writes them: `90d`, `36h`, `15m`; `2.5`, `2.5%`."""

from __future__ import annotations

import re
from typing import Any, Final

from auditor.errors import UsageError

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhdw])")
_SHARE: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,9})?)%?")


def span(value: Any, source: str) -> float:
    """Seconds, 0 or more."""
    found = _SPAN.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise UsageError(f"{source} is {str(value)[:100]!r}: give a time like 90d, 36h, 15m or 30s")
    return float(found[1]) * _UNITS[found[2]]


def long_span(value: Any, source: str) -> float:
    """The same, a minute or more."""
    if (seconds := span(value, source)) < 60:
        raise UsageError(f"{source} is {str(value)[:100]!r}: give a minute or more, like 90d or 12h")
    return seconds


def percent(value: Any, source: str) -> float:
    """Above 0, at most 100."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    found = _SHARE.fullmatch(str(value)) if number or isinstance(value, str) else None
    if found is None or not 0 < float(found[1]) <= 100:
        raise UsageError(f"{source} is {str(value)[:100]!r}: give a percentage above 0 and up to 100")
    return float(found[1])
