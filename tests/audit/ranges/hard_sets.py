"""Sets of keys that mislead an estimate: hidden dense places, characters in no order, keys of extreme length."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final

Make = Callable[[random.Random, int], Iterator[str]]
_HEX: Final = "0123456789abcdef"


def _hidden(depth: int) -> Make:
    """A third of the keys lie below one prefix. It begins with `depth` hexadecimal digits, as the flat keys do."""

    def make(chance: random.Random, number: int) -> Iterator[str]:
        prefix = "bac45d0"[:depth] + "kept/"
        for at in range(number):
            yield f"{chance.randrange(16**10):010x}" if at % 3 else f"{prefix}{chance.randrange(10**9):09}.gz"

    return make


def _hidden_folders(chance: random.Random, number: int) -> Iterator[str]:
    """Two of three keys lie below ten prefixes of different depth, among flat keys."""
    prefixes = [
        "".join(chance.choice(_HEX) for _ in range(depth)) + mark
        for depth in range(2, 7)
        for mark in ("x/logs/2026/", "~tmp/")
    ]
    for at in range(number):
        prefix = chance.choice(prefixes) if at % 3 else ""
        yield f"{prefix}{chance.randrange(16**9):09x}"


def _halves(chance: random.Random, number: int) -> Iterator[str]:
    """Each prefix has half as many keys as the one before."""
    for _ in range(number):
        folder = min(20, int.bit_length(chance.getrandbits(24) | 1))
        yield f"tenant-{24 - folder:02}/{chance.randrange(10**9):09}"


def _long_heads(chance: random.Random, number: int) -> Iterator[str]:
    """Keys of 1,024 bytes. All but the last 25 bytes or so are those of one of three keys."""
    heads = ["\u00e9" * 450 + "/" + "h" * 98, "\u00e9" * 449 + "zz/" + "h" * 98, "\u00e9" * 100 + "q" * 799]
    return (f"{heads[at % 3]}{chance.randrange(10**20):020}" for at in range(number))


def _counters(chance: random.Random, number: int) -> Iterator[str]:
    return (f"item-{at}" for at in range(number))


def _reversed_times(chance: random.Random, number: int) -> Iterator[str]:
    """The newest key comes first; most keys are new ones."""
    return (f"{9_999_999_999_999 - 1_790_000_000_000 + int(chance.expovariate(1e-9))}.json" for _ in range(number))


def _hex_cases(chance: random.Random, number: int) -> Iterator[str]:
    for at in range(number):
        text = f"{chance.randrange(16**12):012x}"
        yield text.upper() if at % 2 else text


def _one_folder(chance: random.Random, number: int) -> Iterator[str]:
    """A thousand folders with one key each, but for one that has all others."""
    for at in range(number):
        yield f"site/{at:04}/index" if at < 1000 else f"site/0617/{chance.randrange(10**10):010}"


def _controls(chance: random.Random, number: int) -> Iterator[str]:
    letters = "\x01\t\n\r\x1b\x7f\x80 aZ\ud7ff\ue000\ufffd\uffff\U00010000\U0001f600\U0010fffd"
    return ("".join(chance.choice(letters) for _ in range(chance.randrange(4, 12))) for _ in range(number))


def _escapes(chance: random.Random, number: int) -> Iterator[str]:
    parts = ("%2F", "%", "%25", "+", "&amp;", "?x=", "#", "%C3%A9", " ")
    for at in range(number):
        yield "".join(chance.choice(parts) for _ in range(chance.randrange(1, 9))) + str(at)


def _slashes(chance: random.Random, number: int) -> Iterator[str]:
    for at in range(number):
        yield f"{'/' * chance.randrange(6)}{chance.choice('ab')}{'//' * chance.randrange(4)}{at}/"


def _chains(chance: random.Random, number: int) -> Iterator[str]:
    """Each key but the shortest ones begins with another key."""
    for at in range(number):
        yield f"{at // 40:06}" + "ab" * (at % 40)


def _random_lengths(chance: random.Random, number: int) -> Iterator[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    for _ in range(number):
        yield "".join(chance.choice(letters) for _ in range(min(60, 1 + int(chance.paretovariate(0.7)))))


def _years(chance: random.Random, number: int) -> Iterator[str]:
    """Nearly all keys are of one hour of nine years of folders."""
    for at in range(number):
        year, month, day, hour = (
            (chance.randrange(2017, 2026), chance.randrange(1, 13), chance.randrange(1, 29), chance.randrange(24))
            if at % 10 == 0
            else (2023, 7, 14, 9)
        )
        yield f"raw/year={year}/month={month:02}/day={day:02}/hour={hour:02}/{chance.randrange(16**8):08x}.parquet"


HARD_SETS: Final[dict[str, Make]] = {
    "hidden at depth 1": _hidden(1),
    "hidden at depth 2": _hidden(2),
    "hidden at depth 3": _hidden(3),
    "hidden at depth 5": _hidden(5),
    "ten hidden folders": _hidden_folders,
    "halves": _halves,
    "long heads": _long_heads,
    "counters": _counters,
    "reversed times": _reversed_times,
    "hex of both cases": _hex_cases,
    "one of a thousand folders": _one_folder,
    "control characters": _controls,
    "percent escapes": _escapes,
    "slashes": _slashes,
    "keys that begin keys": _chains,
    "random lengths": _random_lengths,
    "one hour of years": _years,
}
"""By name, what makes about so many keys by chance. No set has the character U+10FFFF."""
