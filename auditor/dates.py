"""Dates: the two forms that S3 writes, read without a parser of all the world's dates, and the one that we write."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

_NAMES: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS: Final = {name: month for month, name in enumerate(_NAMES, 1)}


def http_date(text: str) -> datetime:
    """`Fri, 02 Jan 2026 03:04:05 GMT`, or any other form that RFC 5322 knows; raises ValueError."""
    month = _MONTHS.get(text[8:11])
    if month is None or len(text) != 29 or not text.endswith(" GMT"):
        return parsedate_to_datetime(text)
    hour, minute, second = text[17:25].split(":")
    return datetime(int(text[12:16]), month, int(text[5:7]), int(hour), int(minute), int(second), tzinfo=UTC)


def iso_date(text: str) -> datetime:
    """ISO 8601 of any precision; UTC where it names no zone; raises ValueError."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def any_date(text: str) -> datetime:
    """Either form, as an SDK may meet it; raises ValueError."""
    return iso_date(text) if text[:1].isdigit() else http_date(text)


def seconds_in_utc(moment: datetime) -> str:
    """ISO 8601, UTC, seconds. A moment that no calendar of UTC's has (the first day of all, far east) as it is."""
    if moment.tzinfo is not UTC:
        try:
            moment = moment.astimezone(UTC)
        except OverflowError:
            return str(moment)
    return f"{moment.isoformat()[:19]}Z"


def now_in_utc() -> str:
    """This moment, in the same form."""
    return seconds_in_utc(datetime.now(UTC))
