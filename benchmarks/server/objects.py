"""The server's objects; each is computed from its number or its name at every request."""

from __future__ import annotations

import functools
import gzip
import hashlib
import random
from typing import Final

from tests.support.servers.computed import NumberedKeys

BUCKET: Final = "audited"
OWNER: Final = "a0" * 32
PREFIX: Final = "warehouse/"
SIZED: Final = "sized/"
"""`sized/N` and `sized/N/NAME` have N incompressible bytes; `gzipped/N` is a gzip file of so many bytes."""
GZIPPED: Final = "gzipped/"
BLOCK: Final = random.Random(1).randbytes(1024 * 1024)
_NAME: Final = PREFIX + "exports/2026/day-%05d/part-%09d.parquet"
_AT: Final = len(_NAME % (0, 0)) - len(".parquet") - 9


def key_of(number: int) -> str:
    """The key of a number. Keys are in the order of their numbers, a thousand in a folder."""
    return _NAME % (number // 1000, number)


@functools.lru_cache(1)
def keys_of(objects: int) -> NumberedKeys:
    """The keys of so many objects."""
    return NumberedKeys(objects, key_of, slice(_AT, _AT + 9))


def etag_of(number: int) -> str:
    return hashlib.md5(b"%d" % number).hexdigest()


def size_of(number: int, size: int | None = None) -> int:
    """The bytes of an object; `size` if all objects have the same."""
    return number * 7919 % 10_000_000 if size is None else size


def is_public(number: int) -> bool:
    return number % 1000 == 0


@functools.lru_cache(2)
def _gzipped(size: int) -> bytes:
    """A gzip file that stores the bytes uncompressed: unpacking it means checking and copying."""
    return gzip.compress(bytes(body_of(size)), compresslevel=0, mtime=0)


@functools.lru_cache(2)
def body_of(size: int) -> memoryview:
    """The first `size` bytes, in memory; for small objects only."""
    whole, rest = divmod(size, len(BLOCK))
    return memoryview(BLOCK * whole + BLOCK[:rest])


def sized_body(key: str) -> memoryview | int | None:
    """The bytes of a sized object; their number where they are BLOCK repeated; None without such an object."""
    folder, _, rest = key.partition("/")
    digits = rest.partition("/")[0]
    if not (digits.isascii() and digits.isdecimal()):
        return None
    if f"{folder}/" == GZIPPED:
        return memoryview(_gzipped(int(digits)))
    return int(digits) if f"{folder}/" == SIZED else None
