"""Compare a text with the one that is expected, and name the first place at which they differ."""

from __future__ import annotations

from itertools import takewhile, zip_longest
from typing import Final

_AROUND: Final = 60


def difference(expected: bytes, found: bytes) -> str | None:
    """Return words for the first line that differs, with the bytes around its first differing byte; None if none
    does.
    """
    for number, (old, new) in enumerate(
        zip_longest(expected.split(b"\n"), found.split(b"\n"), fillvalue=b"nothing more"), 1
    ):
        if old != new:
            at = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
            part = slice(max(at - _AROUND, 0), at + _AROUND)
            return f"line {number}, byte {at}: expected {old[part]!r}, found {new[part]!r}"
    return None
