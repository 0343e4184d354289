"""Encode a request as the bytes of HTTP/1.1."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from auditor.s3.http.base import Request

METHODS: Final = ("GET", "HEAD", "POST")
"""The methods that an engine sends. Requests with them may safely be sent twice: the only POST is GetCallerIdentity."""

_OWN: Final = 2
"""The number of headers at the end of a request that differ in each request: the signer's date and signature
(Signer.sign)."""
_CACHED: Final = 4

Pairs = tuple[tuple[str, str], ...]


def _lines(headers: Iterable[tuple[str, str]]) -> str:
    written = [f"{name}: {value}" for name, value in headers]
    if _broken("".join(written)):
        raise ValueError("a request's headers hold no line break and no NUL")
    written.append("")
    return "\r\n".join(written)


class CommonLines:
    """Encodes the headers that many requests share, and caches the encoded lines.

    The lines contain a session token. Therefore the cache is small, and belongs to one transport: it ends when the
    transport does.
    """

    __slots__ = ("_cached",)

    def __init__(self) -> None:
        self._cached: dict[Pairs, str] = {}

    def __call__(self, headers: Pairs) -> str:
        """Return the headers as lines of HTTP. Raises ValueError for a line break or a NUL."""
        found = self._cached.get(headers)
        if found is None:
            if len(self._cached) >= _CACHED:
                self._cached.clear()
            found = self._cached[headers] = _lines(headers)
        return found


def request_bytes(
    request: Request, lines: Callable[[Pairs], str] = _lines, methods: Collection[str] = METHODS
) -> bytes:
    """Return the bytes of an HTTP/1.1 request.

    lines: encodes the headers that the request shares with others. methods: the allowed methods.

    Raises ValueError for another method, and for text that could change the request: a line break or NUL anywhere, a
    blank or `#` in the target, or a character that is not ASCII.
    """
    method, target, headers = request.method, request.target, request.headers
    if method not in methods:
        raise ValueError(f"a request is one of {', '.join(methods)}, not {method[:20]!r}")
    if target[:1] != "/" or " " in target or "#" in target or _broken(target):
        raise ValueError("a request's target is an encoded path and query, without a line break")
    common, own = headers[:-_OWN], headers[-_OWN:]
    head = f"{method} {target} HTTP/1.1\r\n{lines(common)}{_lines(own)}\r\n".encode("ascii")
    return head + request.body if request.body else head


def _broken(text: str) -> bool:
    return "\n" in text or "\r" in text or "\0" in text
