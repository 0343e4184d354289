"""Readers of JSON texts that have a form of their own: patterns, encoded keys, ETags, times."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote_plus

from auditor.model.dates import iso_date, seconds_in_utc
from auditor.model.json_text import JsonError, Reader, plain_text, text


def matching(pattern: str, problem: str, read: Reader[str] = text) -> Reader[str]:
    """Return a reader of texts that match the pattern as a whole. It raises JsonError(problem) for any other text."""
    fits = re.compile(pattern).fullmatch

    def read_matching(value: Any) -> str:
        found = read(value)
        if fits(found) is None:
            raise JsonError(problem)
        return found

    return read_matching


def form_text(value: Any) -> str:
    """Decode a form-urlencoded text: a space is "+"."""
    if not isinstance(value, str):
        raise JsonError("is not a string with text")
    try:
        return text(unquote_plus(value, errors="strict"))
    except UnicodeDecodeError as error:
        raise JsonError("is not valid unicode") from error


def text_or_none(value: Any) -> str | None:
    """Return a printable text; None for null and for an empty text."""
    return None if value in (None, "") else plain_text(value)


def etag_text(value: Any) -> str:
    """Return the ETag without quotes. Raise JsonError for an empty ETag: the object would seem overwritten."""
    etag = plain_text(value).strip('"')
    if not etag:
        raise JsonError("is not a string with text")
    return etag


def time_text(value: Any) -> str:
    """Convert a time to ISO 8601, UTC, seconds."""
    written = plain_text(value)
    try:
        return seconds_in_utc(iso_date(written))
    except ValueError as error:
        raise JsonError("is not a time") from error
