"""Read the rest out of TLS after the connection closed, and check that a close_notify ended it.

Without a close_notify the data may be truncated, which anyone on the network can cause.
"""

from __future__ import annotations

import ssl
from typing import Final

_PIECE: Final = 64 * 1024


def drain_tls(tls: ssl.SSLObject, most: int) -> tuple[list[bytes], bool]:
    """Return at most `most` bytes, in pieces, and True if a close_notify follows them, else False."""
    pieces: list[bytes] = []
    try:
        while most > 0 and (piece := tls.read(min(most, _PIECE))):
            pieces.append(piece)
            most -= len(piece)
    except ssl.SSLZeroReturnError:
        return pieces, True
    except ssl.SSLError:
        return pieces, False
    return pieces, most > 0
