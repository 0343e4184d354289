"""Decide which kept facts are due, so that none becomes older than its limit and all runs ask about equally many."""

from __future__ import annotations

from typing import Final
from zlib import crc32

from msgspec import Struct

_SLACK: Final = 0.05
"""Share of the time between two runs by which a run may come late, without that a fact becomes older than its limit."""
_SPREAD: Final = 2_654_435_761  # Knuth's multiplicative hash: keys that count upwards fall into all turns
_WORD: Final = 2**32


class FactTurns(Struct, frozen=True):
    """The order in which runs ask again for one kind of fact.

    Each object has its turn once in `number` runs, by its key, which makes the runs even. Whatever its turn, a fact is
    due if the next run would come too late for it: its age and the time between two runs are more than the limit
    together. So no fact that a run keeps is older than its limit before the next run, as long as that comes in time.

    limit: largest age, in seconds. every: seconds from one run to the next. began: start of this run, in seconds since
    1970.
    """

    limit: float
    every: float
    began: float

    @property
    def number(self) -> int:
        """Number of runs in which each object has one turn, at least 1: then each run asks about every object."""
        return max(1, int((self.limit - _SLACK * self.every) // self.every))

    def due(self, key: str, version_id: str | None, read: float, now: float) -> bool:
        """True if the fact of this object must be asked. read: when it was read; now: the present time, both in seconds
        since 1970. A fact of the future has no age: it is due.
        """
        if self.limit == float("inf"):
            return read > now
        if read > now or now - read + self.every > self.limit:
            return True
        turn = int(self.began // self.every)
        return int(read // self.every) < turn and self.turn_of(key, version_id) == turn % self.number

    def turn_of(self, key: str, version_id: str | None) -> int:
        """Return the turn of an object, from 0."""
        name = key if version_id is None else f"{key}\0{version_id}"
        spread = crc32(name.encode(errors="surrogatepass")) * _SPREAD % _WORD
        return spread * self.number // _WORD
