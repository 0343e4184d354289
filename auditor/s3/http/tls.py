"""Read the rest of a body out of TLS after the connection ended, and check that TLS's close_notify ended it.

Without a close_notify the body may be cut, which anyone on the network can do.
"""

from __future__ import annotations

import ssl
from typing import Final

_PIECE: Final = 64 * 1024


def drain_tls(tls: ssl.SSLObject, most: int) -> tuple[list[bytes], bool]:
    """Return at most `most` bytes that are left in TLS, in pieces, and True if a close_notify follows them."""
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
