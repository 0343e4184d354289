"""Sets of keys as buckets have them, each with its own way to be uneven or to mislead an estimate."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final
from uuid import UUID

Make = Callable[[random.Random, int], Iterator[str]]


def _uuids(chance: random.Random, number: int) -> Iterator[str]:
    return (str(UUID(int=chance.getrandbits(128))) for _ in range(number))


def _dates(chance: random.Random, number: int) -> Iterator[str]:
    for at in range(number):
        year = min(2026, 2015 + int(12 * chance.random() ** 0.15))  # most are of the last years
        yield f"logs/{year}/{chance.randrange(1, 13):02}/{chance.randrange(1, 29):02}/{at}.gz"


def _giant(chance: random.Random, number: int) -> Iterator[str]:
    """99 of 100 keys have the same prefix."""
    for _ in range(number):
        name = f"{chance.randrange(16**12):012x}.jpg"
        yield f"{chance.choice('abcdefgxyz')}/{name}" if chance.random() < 0.01 else f"media/originals/{name}"


def _numbered(chance: random.Random, number: int) -> Iterator[str]:
    return (f"logs/app/{at:08}.json" for at in range(number))


def _folders(chance: random.Random, number: int) -> Iterator[str]:
    return (f"logs/day-{at // 100:05}/part-{at:09}.gz" for at in range(number))


def _uuids_below(chance: random.Random, number: int) -> Iterator[str]:
    return (f"media/{name}.jpg" for name in _uuids(chance, number))


def _long(chance: random.Random, number: int) -> Iterator[str]:
    """All keys begin with the same 880 characters."""
    return (f"{'x' * 700}/{'customer-' * 20}{chance.randrange(10**9):09}/a" for _ in range(number))


def _tail(chance: random.Random, number: int) -> Iterator[str]:
    """Nearly all keys are below the last prefix."""
    return (f"a/{at:05}" if at < number // 50 else f"zz/z/{chance.randrange(10**10):010}" for at in range(number))


def _hidden(depth: int) -> Make:
    """A third of the keys lie below one prefix. It begins with `depth` hexadecimal digits, as the flat keys do."""

    def make(chance: random.Random, number: int) -> Iterator[str]:
        prefix = "bac45d0"[:depth] + "kept/"
        for at in range(number):
            yield f"{chance.randrange(16**10):010x}" if at % 3 else f"{prefix}{chance.randrange(10**9):09}.gz"

    return make


def _controls(chance: random.Random, number: int) -> Iterator[str]:
    letters = "\x01\t\n\r\x1b\x7f\x80 aZ\ud7ff\ue000\ufffd\uffff\U00010000\U0001f600\U0010fffd"
    return ("".join(chance.choice(letters) for _ in range(chance.randrange(4, 12))) for _ in range(number))


def _escapes(chance: random.Random, number: int) -> Iterator[str]:
    parts = ("%2F", "%", "%25", "+", "&amp;", "?x=", "#", "%C3%A9", " ")
    for at in range(number):
        yield "".join(chance.choice(parts) for _ in range(chance.randrange(1, 9))) + str(at)


def _chains(chance: random.Random, number: int) -> Iterator[str]:
    """Each key but the shortest ones begins with another key."""
    for at in range(number):
        yield f"{at // 40:06}" + "ab" * (at % 40)


SETS: Final[dict[str, Make]] = {
    "uuids": _uuids,
    "dates": _dates,
    "one giant prefix": _giant,
    "one prefix of uuids": _uuids_below,
    "folders of a hundred keys": _folders,
    "one prefix of numbers": _numbered,
    "long shared prefix": _long,
    "the last prefix": _tail,
    "hidden at depth 3": _hidden(3),
    "hidden at depth 5": _hidden(5),
    "control characters": _controls,
    "percent escapes": _escapes,
    "keys that begin keys": _chains,
}
"""By name, what makes about so many keys by chance. No set has the character U+10FFFF."""


def keys_of_set(name: str, number: int) -> list[str]:
    """Return about so many different keys in order, the same ones each time."""
    return sorted(set(SETS[name](random.Random(name), number)))
