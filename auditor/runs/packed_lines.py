"""Read the lines of a file in gzip within limits: a small file can unpack to any size."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from functools import partial
from typing import Final

LONGEST_LINE: Final = 1024 * 1024
"""Bytes of the longest line that is read."""
LARGEST_UNPACKED: Final = 1024 * 1024 * 1024
"""Bytes of all lines of a file. 50,000 lines with the longest ACLs have about half of it."""
_BUFFER: Final = 64 * 1024


def packed_lines(data: bytes | io.BufferedReader, largest: int = LARGEST_UNPACKED) -> Iterator[bytes]:
    """Yield the lines of a file in gzip, each with its line end. data: the file, or its bytes. largest: limit in bytes
    of all lines. Raises OSError, EOFError or zlib.error for damage, which a line or a file beyond its limit is, too:
    that is a gzip.BadGzipFile.
    """
    left = largest
    file = io.BytesIO(data) if isinstance(data, bytes) else data
    with io.BufferedReader(gzip.GzipFile(fileobj=file), _BUFFER) as lines:
        for line in iter(partial(lines.readline, LONGEST_LINE + 1), b""):
            left -= len(line)
            if len(line) > LONGEST_LINE:
                raise gzip.BadGzipFile("a line is longer than 1 MiB")
            if left < 0:
                raise gzip.BadGzipFile(f"it unpacks to more than {largest // 1024**2} MiB")
            yield line
