"""A listing of keys in memory, and the sizes of the ranges into which its keys are cut."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from auditor.audit.ranges.cuts import KeyCuts
from auditor.audit.ranges.pieces import KeysFound


class MemoryListing:
    """Lists keys in memory, and counts its calls."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = keys
        self.calls = 0

    async def __call__(self, after: str | None, count: int) -> KeysFound:
        self.calls += 1
        await asyncio.sleep(0)
        begin = 0 if after is None else bisect_right(self.keys, after)
        return KeysFound(self.keys[begin : begin + count], begin + count < len(self.keys))


def sizes(keys: Sequence[str], found: KeyCuts) -> list[int]:
    ends = [0, *(bisect_right(keys, key) for key, _ in found.cuts), len(keys)]
    return [end - begin for begin, end in pairwise(ends)]
