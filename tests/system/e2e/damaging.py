"""A proxy before the deployed S3 that returns other bytes than were written, under the old ETag."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from http.client import HTTPResponse
from typing import Any, Final
from urllib.parse import unquote

from tests.support.servers.forwarding import Forwarding

_PIECE: Final = 64 * 1024


class Damaging(Forwarding):
    """flipped: the place in an object of its one wrong bit, by `/bucket/key`.

    pace: of bodies above 1 MiB, bytes a second. reads: the ranges that were asked of an object; "" for the whole.
    """

    def __init__(self, behind: str, flipped: dict[str, int], *, pace: float | None = None) -> None:
        super().__init__(behind)
        self.reads: dict[str, list[str]] = {}
        self._flipped = flipped
        self._pace = pace

    def asked(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        if method == "GET":
            self.reads.setdefault(_path(target), []).append(headers.get("range", ""))

    def given(self, target: str, answer: HTTPResponse) -> bytes:
        body = bytearray(answer.read())
        place = self._flipped.get(_path(target))
        if place is None or answer.status not in (200, 206):
            return bytes(body)
        found = re.match(r"bytes (\d+)-", answer.headers["Content-Range"] or "")
        place -= int(found[1]) if found else 0
        if 0 <= place < len(body):
            body[place] ^= 1
        return bytes(body)

    def send(self, output: Any, body: bytes) -> None:
        if self._pace is None or len(body) <= 1024 * 1024:
            output.write(body)
            return
        for start in range(0, len(body), _PIECE):
            output.write(body[start : start + _PIECE])
            time.sleep(_PIECE / self._pace)


def _path(target: str) -> str:
    return unquote(target.partition("?")[0])
