"""Read the two date forms of S3, HTTP and ISO 8601, faster than a general parser; write dates as ISO 8601 in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

_NAMES: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS: Final = {name: month for month, name in enumerate(_NAMES, 1)}
_CLOCK: Final = re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]").fullmatch


def http_date(text: str) -> datetime:
    """Read `Fri, 02 Jan 2026 03:04:05 GMT`, or any other form of RFC 5322. Raises ValueError."""
    month = _MONTHS.get(text[8:11])
    if month is None or len(text) != 29 or not text.endswith(" GMT"):
        from email.utils import parsedate_to_datetime  # imports email; S3 writes no such form

        return parsedate_to_datetime(text)
    hour, minute, second = text[17:25].split(":")
    return datetime(int(text[12:16]), month, int(text[5:7]), int(hour), int(minute), int(second), tzinfo=UTC)


def http_date_in_utc(text: str) -> str:
    """Convert an HTTP date to ISO 8601 in UTC, to the second. Raises ValueError.

    Each day is converted once and then cached, because many objects of a bucket were written on the same day.
    """
    clock = text[17:25]
    if len(text) != 29 or text[8:11] not in _MONTHS or not text.endswith(" GMT") or not _CLOCK(clock):
        return seconds_in_utc(http_date(text))
    return f"{_day(text[:16])}T{clock}Z"


@lru_cache(maxsize=1024)
def _day(text: str) -> str:
    return seconds_in_utc(http_date(f"{text} 00:00:00 GMT"))[:10]


def iso_date(text: str) -> datetime:
    """Read an ISO 8601 date of any precision. A date without a time zone is taken as UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def any_date(text: str) -> datetime:
    """Read an HTTP date or an ISO 8601 date. Raises ValueError."""
    return iso_date(text) if text[:1].isdigit() else http_date(text)


def seconds_in_utc(moment: datetime) -> str:
    """Return a moment as ISO 8601 text in UTC, without fractions of a second. A moment that datetime cannot convert to
    UTC (the first hours of year 1, east of Greenwich) keeps its own zone.
    """
    if moment.tzinfo is not UTC:
        try:
            moment = moment.astimezone(UTC)
        except OverflowError:
            return str(moment)
    return f"{moment.isoformat()[:19]}Z"


def now_in_utc() -> str:
    """Return the present moment as ISO 8601 text in UTC, without fractions of a second."""
    return seconds_in_utc(datetime.now(UTC))
