"""A request as the bytes that are sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from auditor.s3.http.base import Request

METHODS = ("GET", "HEAD")
"""Methods that may be sent twice without harm."""

_OWN: Final = 2
"""The last headers are each request's own: the signer's date and signature (Signer.sign)."""
_KEPT: Final = 4

Pairs = tuple[tuple[str, str], ...]


def _lines(headers: Iterable[tuple[str, str]]) -> str:
    written = [f"{name}: {value}" for name, value in headers]
    if _broken("".join(written)):
        raise ValueError("a request's headers hold no line break and no NUL")
    written.append("")
    return "\r\n".join(written)


class CommonLines:
    """The lines of headers that many requests share, written once. They hold a session's token, so few are kept, and
    for no longer than their transport.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[Pairs, str] = {}

    def __call__(self, headers: Pairs) -> str:
        """Raises ValueError for a line break or NUL."""
        found = self._kept.get(headers)
        if found is None:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            found = self._kept[headers] = _lines(headers)
        return found


def request_bytes(request: Request, lines: Callable[[Pairs], str] = _lines) -> bytes:
    """The head of an HTTP/1.1 request, in one piece; raises ValueError for what would be another request.

    That is a line break or NUL anywhere, a blank or `#` in the target, a character that is not ASCII. lines: makes the
    text of all headers but the request's own.
    """
    method, target, headers = request.method, request.target, request.headers
    if method not in METHODS:
        raise ValueError(f"a request is a GET or a HEAD, not {method[:20]!r}")
    if target[:1] != "/" or " " in target or "#" in target or _broken(target):
        raise ValueError("a request's target is an encoded path and query, without a line break")
    common, own = headers[:-_OWN], headers[-_OWN:]
    return f"{method} {target} HTTP/1.1\r\n{lines(common)}{_lines(own)}\r\n".encode("ascii")


def _broken(text: str) -> bool:
    return "\n" in text or "\r" in text or "\0" in text
