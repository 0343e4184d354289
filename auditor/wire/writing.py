"""A request as the bytes that are sent."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from auditor.wire.interface import Request

METHODS = ("GET", "HEAD")
"""Methods that may be sent twice without harm."""

_OWN: Final = 2
"""The headers that change with each request are its last: the signer's date and signature."""


def request_bytes(request: Request) -> bytes:
    """The head of an HTTP/1.1 request, in one piece; raises ValueError for what would be another request.

    That is a line break or NUL anywhere, a blank or `#` in the target, a character that is not ASCII.
    """
    method, target, headers = request.method, request.target, request.headers
    if method not in METHODS:
        raise ValueError(f"a request is a GET or a HEAD, not {method[:20]!r}")
    if target[:1] != "/" or " " in target or "#" in target or _broken(target):
        raise ValueError("a request's target is an encoded path and query, without a line break")
    common, own = headers[:-_OWN], headers[-_OWN:]
    return f"{method} {target} HTTP/1.1\r\n{_same_lines(common)}{_lines(own)}\r\n".encode("ascii")


def _lines(headers: Iterable[tuple[str, str]]) -> str:
    written = [f"{name}: {value}" for name, value in headers]
    if _broken("".join(written)):
        raise ValueError("a request's headers hold no line break and no NUL")
    written.append("")
    return "\r\n".join(written)


_same_lines = lru_cache(maxsize=16)(_lines)


def _broken(text: str) -> bool:
    return "\n" in text or "\r" in text or "\0" in text
