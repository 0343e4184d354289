"""Digests that another process can continue. The functions of libcrypto compute them, at hashlib's speed.

After a multiple of 128 bytes, the state of SHA-256, SHA-512, SHA-1 or MD5 consists of a few words and of the number of
bytes. Only the words and this number are saved and restored, never an image of libcrypto's memory. The functions and
structs are the public ones of OpenSSL's sha.h and md5.h.
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

BLOCK: Final = 128
"""Number of bytes after which the state of every digest can be saved: one block of SHA-512, and two blocks of the other
algorithms."""
_FILES: Final = ("libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.3.dylib", "libcrypto.dylib")
_ROOM: Final = 256
"""Spare bytes at the end of each struct, because the struct in a library may be longer than in OpenSSL's header."""


class _Context(ctypes.Structure):
    """OpenSSL's struct SHA256_CTX, SHA512_CTX, SHA_CTX or MD5_CTX.

    words: the state. low, high: halves of the number of bits so far. held: number of bytes of an unfinished block.
    """

    words: ctypes.Array[Any]
    low: int
    high: int
    held: int


def _context(words: int, word: type[Any] = ctypes.c_uint32) -> type[_Context]:
    fields = [
        ("words", word * words),
        ("low", word),
        ("high", word),
        ("block", word * 16),
        ("held", ctypes.c_uint),
        ("room", ctypes.c_char * _ROOM),
    ]
    return type("_Context", (_Context,), {"_fields_": fields})


class _Kind(NamedTuple):
    """The properties of one algorithm in libcrypto."""

    prefix: str
    """The beginning of the names of libcrypto's functions for the algorithm, such as SHA256."""
    words: int
    """Number of words of the algorithm's state."""
    order: str
    """Byte order of a word in the digest, as the module struct writes it."""
    abc: str
    """The digest of "abc"."""
    context: type[_Context]
    bits: int = 32
    """Number of bits of one word."""


_KINDS: Final[Mapping[str, _Kind]] = {
    "sha256": _Kind("SHA256", 8, ">", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", _context(8)),
    "sha512": _Kind(
        "SHA512",
        8,
        ">",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
        "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        _context(8, ctypes.c_uint64),
        64,
    ),
    "sha1": _Kind("SHA1", 5, ">", "a9993e364706816aba3e25717850c26c9cd0d89d", _context(5)),
    "md5": _Kind("MD5", 4, "<", "900150983cd24fb0d6963f7d28e17f72", _context(4)),
}
"""The properties of each algorithm. The digests of "abc" are the examples in FIPS 180-4 and RFC 1321."""

RESUMABLE: Final = tuple(_KINDS)


class ResumableDigest:
    """A running digest that another process can continue.

    state: the text that state() returned in any process after `count` bytes; None to begin at the first byte.
    """

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
            self._restore(state, count)

    def update(self, data: memoryview) -> None:
        """Hash these bytes. Bytes in a writable buffer are not copied. Other threads can run at the same time."""
        length = len(data)
        if not length:
            return
        start: Any = data.tobytes() if data.readonly else ctypes.byref(ctypes.c_char.from_buffer(data))
        if self._update(ctypes.byref(self._context), start, ctypes.c_size_t(length)) != 1:
            raise OSError(f"{self._kind.prefix}_Update refuses")

    def hexdigest(self) -> str:
        """Return the digest of the bytes so far, in hex. More bytes may follow."""
        copy = type(self._context).from_buffer_copy(self._context)
        digest = ctypes.create_string_buffer(self._kind.bits // 8 * self._kind.words)
        if self._final(digest, ctypes.byref(copy)) != 1:
            raise OSError(f"{self._kind.prefix}_Final refuses")
        return digest.raw.hex()

    @property
    def count(self) -> int:
        """Number of bytes so far, as libcrypto counts them."""
        return (self._context.high << self._kind.bits | self._context.low) // 8

    def state(self) -> str:
        """Return the digest's state in hex, in the digest's byte order.

        Raises ValueError if the number of bytes so far is not a multiple of BLOCK.
        """
        if self.count % BLOCK:
            raise ValueError(f"a digest has a state at multiples of {BLOCK} bytes only")
        return struct.pack(self._layout, *self._context.words).hex()

    def _restore(self, state: str, count: int) -> None:
        if count % BLOCK or len(state) != self._kind.bits // 4 * self._kind.words:
            raise ValueError(f"no state of {self.name} after {count} bytes")
        self._context.words[:] = list(struct.unpack(self._layout, bytes.fromhex(state)))
        self._context.high, self._context.low = divmod(8 * count, 1 << self._kind.bits)
        self._context.held = 0

    @property
    def _layout(self) -> str:
        return f"{self._kind.order}{self._kind.words}{'I' if self._kind.bits == 32 else 'Q'}"


@cache
def refusal() -> str | None:
    """Return the reason why this machine cannot continue digests; None if it can.

    libcrypto is tested once in each process.
    """
    try:
        for name in RESUMABLE:
            _test(name)
    except (OSError, AttributeError, ValueError) as error:
        return f"{sys.platform}'s libcrypto gives no state to continue from: {error}"
    return None


def _test(name: str) -> None:
    """Raise an error if libcrypto computes, or continues, a digest of this algorithm wrongly."""
    plain = ResumableDigest(name)
    plain.update(memoryview(b"abc"))
    _same(name, plain.hexdigest(), _KINDS[name].abc)
    data = bytes(range(251)) * 9  # longer than 16 blocks
    whole = hashlib.new(name, data, usedforsecurity=False).hexdigest()
    for count in (0, BLOCK, 2 * BLOCK, 16 * BLOCK):
        first = ResumableDigest(name)
        first.update(memoryview(bytearray(data[:count])))
        then = ResumableDigest(name, first.state(), count)
        then.update(memoryview(bytearray(data[count:])))
        _same(name, then.hexdigest(), whole)
    far = ResumableDigest(name, ResumableDigest(name).state(), 2**40)  # a count that needs both halves
    far.update(memoryview(bytearray(BLOCK)))
    _same(name, str(far.count), str(2**40 + BLOCK))


def _same(name: str, found: str, wanted: str) -> None:
    if found != wanted:
        raise ValueError(f"{name} is {found}, not {wanted}")


@cache
def _library() -> ctypes.CDLL:
    """Return the libcrypto that hashlib uses. If that library lacks the functions, return the system's libcrypto.
    Raises OSError if both lack the functions.
    """
    for name in _candidates():
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue  # try the next candidate
        if all(hasattr(library, f"{kind.prefix}_Init") for kind in _KINDS.values()):
            return library
    raise OSError("there is no libcrypto with SHA256_Init, SHA512_Init, SHA1_Init and MD5_Init")


def _candidates() -> Iterator[str]:
    own = getattr(sys.modules.get("_hashlib"), "__file__", None)
    if own:
        yield own  # hashlib's module; a search in it also finds the functions of the libcrypto linked to it
    yield from _FILES
    from ctypes.util import find_library  # imports subprocess; the names above nearly always do

    found = find_library("crypto")
    if found:
        yield found
