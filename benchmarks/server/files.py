"""A bucket for run folders: it keeps what is written to it, and honours conditions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote
from xml.sax.saxutils import escape

BUCKET: Final = "run-folders"
Found = tuple[int, bytes, bytes]
"""Status, ETag with quotes, body."""


class Files:
    """The objects of the bucket, by their encoded keys."""

    def __init__(self) -> None:
        self._held: dict[str, bytes] = {}

    def answer(self, method: str, key: str, headers: Mapping[bytes, bytes], body: bytes) -> Found:
        held = self._held.get(key)
        if method == "GET":
            return (404, b"", b"") if held is None else (200, _etag(held), held)
        if method == "DELETE":
            self._held.pop(key, None)
            return 204, b"", b""
        wanted = headers.get(b"if-match")
        if headers.get(b"if-none-match") == b"*" and held is not None:
            return 412, b"", b""
        if wanted is not None and (held is None or _etag(held) != wanted):
            return (404 if held is None else 412), b"", b""
        self._held[key] = body
        return 200, _etag(body), b""

    def listing(self, prefix: str) -> bytes:
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified>"
            f"<ETag>{escape(_etag(body).decode())}</ETag><Size>{len(body)}</Size></Contents>"
            for path, body in sorted(self._held.items())
            if (key := unquote(path)).startswith(prefix)
        )
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>".encode()


def _etag(body: bytes) -> bytes:
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'.encode()
