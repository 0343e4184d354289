"""Readers for JSON strings with a syntax of their own: patterns, URL-encoded keys, ETags, times."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote_plus

from auditor.model.dates import iso_date, seconds_in_utc
from auditor.model.json_text import JsonError, Reader, plain_text, text


def matching(pattern: str, problem: str, read: Reader[str] = text) -> Reader[str]:
    """Return a reader that accepts a text if all of it matches `pattern`, and raises JsonError(problem) for any other
    text. read: the reader that checks the value first.
    """
    fits = re.compile(pattern).fullmatch

    def read_matching(value: Any) -> str:
        found = read(value)
        if fits(found) is None:
            raise JsonError(problem)
        return found

    return read_matching


def form_text(value: Any) -> str:
    """Decode a URL-encoded object key, as in S3's events, where "+" stands for a space. Raises JsonError."""
    if not isinstance(value, str):
        raise JsonError("is not a string with text")
    try:
        return text(unquote_plus(value, errors="strict"))
    except UnicodeDecodeError as error:
        raise JsonError("is not valid unicode") from error


def text_or_none(value: Any) -> str | None:
    """Return the value if it is printable ASCII text; None for null and for an empty text. Raises JsonError."""
    return None if value in (None, "") else plain_text(value)


def etag_text(value: Any) -> str:
    """Return an ETag without its quotes. Raises JsonError for an empty ETag, which would differ from every object's."""
    etag = plain_text(value).strip('"')
    if not etag:
        raise JsonError("is not a string with text")
    return etag


def time_text(value: Any) -> str:
    """Convert an ISO 8601 time to UTC, without fractions of a second. Raises JsonError."""
    written = plain_text(value)
    try:
        return seconds_in_utc(iso_date(written))
    except ValueError as error:
        raise JsonError("is not a time") from error
