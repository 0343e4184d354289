"""Digests whose state can be carried to another process: libcrypto's own functions, at hashlib's speed.

At a multiple of 64 bytes the state of SHA-256, SHA-1 and MD5 is only their words and the count of bytes so far: no
memory image is ever written or read. The functions are those of OpenSSL's sha.h and md5.h, with their public structs.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib
import struct
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

BLOCK: Final = 64
"""Bytes; a state can be carried after any multiple of these."""
_FILES: Final = ("libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.3.dylib", "libcrypto.dylib")
_ROOM: Final = 256
"""Bytes beyond each struct: a library with a longer one must not write over anything."""


class _Context(ctypes.Structure):
    """SHA256_CTX, SHA_CTX and MD5_CTX are alike: words, the count of bits in two halves, the rest of a block."""

    words: ctypes.Array[ctypes.c_uint32]
    low: int
    high: int
    held: int


def _context(words: int) -> type[_Context]:
    fields = [
        ("words", ctypes.c_uint32 * words),
        ("low", ctypes.c_uint32),
        ("high", ctypes.c_uint32),
        ("block", ctypes.c_uint32 * 16),
        ("held", ctypes.c_uint),
        ("room", ctypes.c_char * _ROOM),
    ]
    return type("_Context", (_Context,), {"_fields_": fields})


@dataclass(frozen=True, slots=True)
class _Kind:
    """One algorithm. prefix: of its functions' names. order: of a word's bytes in the digest (struct's letter)."""

    prefix: str
    words: int
    order: str
    abc: str
    context: type[_Context]


_KINDS: Final[Mapping[str, _Kind]] = {
    "sha256": _Kind("SHA256", 8, ">", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", _context(8)),
    "sha1": _Kind("SHA1", 5, ">", "a9993e364706816aba3e25717850c26c9cd0d89d", _context(5)),
    "md5": _Kind("MD5", 4, "<", "900150983cd24fb0d6963f7d28e17f72", _context(4)),
}
"""abc: the digest of "abc" in FIPS 180-4's and RFC 1321's own examples."""

CARRIED: Final = tuple(_KINDS)


class ResumableDigest:
    """A digest in the making. state: as `state` gave it, in this process or in another one, after `count` bytes."""

    __slots__ = ("_context", "_final", "_kind", "_update", "name")

    def __init__(self, name: str, state: str | None = None, count: int = 0) -> None:
        library, kind = _library(), _KINDS[name]
        self.name = name
        self._kind = kind
        self._context = kind.context()
        self._update = getattr(library, f"{kind.prefix}_Update")
        self._final = getattr(library, f"{kind.prefix}_Final")
        if getattr(library, f"{kind.prefix}_Init")(ctypes.byref(self._context)) != 1:
            raise OSError(f"{kind.prefix}_Init refuses")
        if state is not None:
            self._take_up(state, count)

    def update(self, data: memoryview) -> None:
        """Any bytes; of a buffer that can be written, without a copy. Lets go of the GIL."""
        length = len(data)
        if not length:
            return
        start: Any = data.tobytes() if data.readonly else ctypes.byref(ctypes.c_char.from_buffer(data))
        if self._update(ctypes.byref(self._context), start, ctypes.c_size_t(length)) != 1:
            raise OSError(f"{self._kind.prefix}_Update refuses")

    def hexdigest(self) -> str:
        """Of what was given so far; more can be given after it."""
        copy = type(self._context).from_buffer_copy(self._context)
        digest = ctypes.create_string_buffer(4 * self._kind.words)
        if self._final(digest, ctypes.byref(copy)) != 1:
            raise OSError(f"{self._kind.prefix}_Final refuses")
        return digest.raw.hex()

    @property
    def count(self) -> int:
        """Bytes given so far, as libcrypto counts them."""
        return (self._context.high << 32 | self._context.low) // 8

    def state(self) -> str:
        """Its words as hex, in the order of the digest's bytes; ValueError unless at a multiple of BLOCK."""
        if self._context.held or self.count % BLOCK:
            raise ValueError(f"a state can be carried at multiples of {BLOCK} bytes only")
        return struct.pack(self._layout, *self._context.words).hex()

    def _take_up(self, state: str, count: int) -> None:
        if count % BLOCK or len(state) != 8 * self._kind.words:
            raise ValueError(f"no state of {self.name} after {count} bytes")
        self._context.words[:] = list(struct.unpack(self._layout, bytes.fromhex(state)))
        bits = 8 * count
        self._context.low, self._context.high = bits & 0xFFFFFFFF, bits >> 32
        self._context.held = 0

    @property
    def _layout(self) -> str:
        return f"{self._kind.order}{self._kind.words}I"


@cache
def refusal() -> str | None:
    """Why no state can be carried here, None when all is well. Tests libcrypto once a process, before its first use."""
    try:
        for name in CARRIED:
            _test(name)
    except (OSError, AttributeError, ValueError) as error:
        return f"{sys.platform}'s libcrypto gives no state that can be carried: {error}"
    return None


def _test(name: str) -> None:
    plain = ResumableDigest(name)
    plain.update(memoryview(b"abc"))
    _same(name, plain.hexdigest(), _KINDS[name].abc)
    data = bytes(range(251)) * 5
    whole = hashlib.new(name, data, usedforsecurity=False).hexdigest()
    for count in (0, BLOCK, 2 * BLOCK, 16 * BLOCK):
        first = ResumableDigest(name)
        first.update(memoryview(bytearray(data[:count])))
        then = ResumableDigest(name, first.state(), count)
        then.update(memoryview(bytearray(data[count:])))
        _same(name, then.hexdigest(), whole)
    far = ResumableDigest(name, ResumableDigest(name).state(), 2**40)  # the count has two halves
    far.update(memoryview(bytearray(BLOCK)))
    _same(name, str(far.count), str(2**40 + BLOCK))


def _same(name: str, found: str, wanted: str) -> None:
    if found != wanted:
        raise ValueError(f"{name} is {found}, not {wanted}")


@cache
def _library() -> ctypes.CDLL:
    """The libcrypto that hashlib itself uses, else the system's; OSError when there is none with these functions."""
    for name in _candidates():
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue  # the next one may be there
        if all(hasattr(library, f"{kind.prefix}_Init") for kind in _KINDS.values()):
            return library
    raise OSError("there is no libcrypto with SHA256_Init, SHA1_Init and MD5_Init")


def _candidates() -> Iterator[str]:
    own = getattr(sys.modules.get("_hashlib"), "__file__", None)
    if own:
        yield own  # a look-up in it finds the symbols of what it is linked to
    yield from _FILES
    found = ctypes.util.find_library("crypto")
    if found:
        yield found
