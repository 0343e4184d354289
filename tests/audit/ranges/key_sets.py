"""Sets of keys as buckets have them, each with its own way to be uneven."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final
from uuid import UUID

from tests.audit.ranges.hard_sets import HARD_SETS

Make = Callable[[random.Random, int], Iterator[str]]


def _uuids(chance: random.Random, number: int) -> Iterator[str]:
    return (str(UUID(int=chance.getrandbits(128))) for _ in range(number))


def _numbers(chance: random.Random, number: int) -> Iterator[str]:
    return (f"data/{at:09}.bin" for at in range(number))


def _dates(chance: random.Random, number: int) -> Iterator[str]:
    for at in range(number):
        year = min(2026, 2015 + int(12 * chance.random() ** 0.15))  # most are of the last years
        yield f"logs/{year}/{chance.randrange(1, 13):02}/{chance.randrange(1, 29):02}/{at}.gz"


def _deep(chance: random.Random, number: int) -> Iterator[str]:
    names = ("a", "bb", "ccc", "photos", "x-1")
    for at in range(number):
        folders = [chance.choice(names) for _ in range(chance.randrange(1, 14))]
        yield f"{'/'.join(folders)}/{chance.randrange(10**9)}-{at}"


def _giant(chance: random.Random, number: int) -> Iterator[str]:
    """99 of 100 keys have the same prefix."""
    for _ in range(number):
        name = f"{chance.randrange(16**12):012x}.jpg"
        yield f"{chance.choice('abcdefgxyz')}/{name}" if chance.random() < 0.01 else f"media/originals/{name}"


def _unicode(chance: random.Random, number: int) -> Iterator[str]:
    letters = "\u00e4\u00f6\u00fc\u00df\u00e9\u00f1\u65e5\u672c\u8a9e\u4e2d\u6587\u5b57\u0444\U0001f600\uffee-_/ab0123"
    for at in range(number):
        yield "".join(chance.choice(letters) for _ in range(chance.randrange(3, 14))) + str(at)


def _long(chance: random.Random, number: int) -> Iterator[str]:
    """All keys begin with the same 880 characters."""
    return (f"{'x' * 700}/{'customer-' * 20}{chance.randrange(10**9):09}/a" for _ in range(number))


def _two_long(chance: random.Random, number: int) -> Iterator[str]:
    return (f"{'x' * 400 if at % 2 else 'y' * 500}{chance.randrange(10**9):09}" for at in range(number))


def _users(chance: random.Random, number: int) -> Iterator[str]:
    """Half of the keys are those of a few users."""
    return (f"user-{min(9999, int(1 / (chance.random() + 1e-4)))}/{chance.randrange(16**9):09x}" for _ in range(number))


def _mixed(chance: random.Random, number: int) -> Iterator[str]:
    for at in range(number):
        yield (
            f"{chance.randrange(16**8):08x}-{at}",
            f"IMG_{chance.randrange(10**7):07}.JPG",
            f"backup/2026/{chance.randrange(1, 13):02}/db-{chance.randrange(10**8)}.sql",
        )[at % 3]


def _tail(chance: random.Random, number: int) -> Iterator[str]:
    """Nearly all keys are below the last prefix."""
    return (f"a/{at:05}" if at < number // 50 else f"zz/z/{chance.randrange(10**10):010}" for at in range(number))


SETS: Final[dict[str, Make]] = {
    "uuids": _uuids,
    "numbers": _numbers,
    "dates": _dates,
    "deep folders": _deep,
    "one giant prefix": _giant,
    "unicode": _unicode,
    "long shared prefix": _long,
    "two long prefixes": _two_long,
    "users": _users,
    "mixed": _mixed,
    "the last prefix": _tail,
}


def keys_of_set(name: str, number: int) -> list[str]:
    """Return about so many different keys in order, the same ones each time."""
    return sorted(set((SETS | HARD_SETS)[name](random.Random(name), number)))
