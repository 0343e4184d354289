"""A request as the bytes that are sent."""

from __future__ import annotations

from auditor.wire.interface import Request

METHODS = ("GET", "HEAD")
"""Methods that may be sent twice without harm."""


def request_bytes(request: Request) -> bytes:
    """The head of an HTTP/1.1 request, in one piece; raises ValueError for what would be another request.

    That is a line break or NUL anywhere, a blank or `#` in the target, a character that is not ASCII.
    """
    target = request.target
    if request.method not in METHODS:
        raise ValueError(f"a request is a GET or a HEAD, not {request.method[:20]!r}")
    if target[:1] != "/" or " " in target or "#" in target:
        raise ValueError("a request's target is an encoded path and query")
    lines = [f"{request.method} {target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in request.headers]
    written = "\r\n".join(lines)
    if written.count("\n") != len(lines) - 1 or written.count("\r") != len(lines) - 1 or "\0" in written:
        raise ValueError("a request's target and headers hold no line break and no NUL")
    return f"{written}\r\n\r\n".encode("ascii")
