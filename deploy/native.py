"""Remove the debugging information of native modules, in the same way on every machine, without `strip`."""

from __future__ import annotations

import struct
from typing import Final

from deploy.errors import BuildError

_MACHINES: Final = {"arm64": 183, "x86_64": 62}
"""e_machine of the ELF header (System V ABI, "ELF Header": EM_AARCH64, EM_X86_64)."""

_ELF64_LITTLE: Final = b"\x7fELF\x02\x01"
_MACHINE, _SEGMENTS_AT, _SECTIONS_AT, _SEGMENT_SIZE, _SECTION_COUNT = 18, 32, 40, 54, 60
"""Offsets in the ELF header of e_machine, e_phoff, e_shoff, e_phentsize and e_phnum, e_shnum and e_shstrndx."""

_NATIVE: Final = (".so", ".dylib")


def is_native(name: str) -> bool:
    """True for the name of a native module, or of a library with its version at the end (libx.so.1)."""
    last = name.rpartition("/")[2]
    return last.endswith(_NATIVE) or ".so." in last


def slim(name: str, content: bytes, architecture: str) -> bytes:
    """Cut the library after its last segment. The sections behind it are for linkers and debuggers, and are not loaded.

    A file of another format stays as it is. Raises BuildError for a library of another architecture.
    """
    if not content.startswith(_ELF64_LITTLE):
        return content
    (machine,) = struct.unpack_from("<H", content, _MACHINE)
    if machine != _MACHINES[architecture]:
        raise BuildError(f"{name} is not built for {architecture}")
    (start,) = struct.unpack_from("<Q", content, _SEGMENTS_AT)
    size, count = struct.unpack_from("<HH", content, _SEGMENT_SIZE)
    end = start + size * count
    for header in range(start, end, size):
        offset, _, _, length = struct.unpack_from("<4Q", content, header + 8)
        end = max(end, offset + length)
    kept = bytearray(content[:end])
    struct.pack_into("<Q", kept, _SECTIONS_AT, 0)
    struct.pack_into("<HH", kept, _SECTION_COUNT, 0, 0)
    return bytes(kept)
