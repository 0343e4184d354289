"""Drain TLS after the connection closed; tell a close_notify from a truncation, which anyone on the way can cause."""

from __future__ import annotations

import ssl
from typing import Final

_PIECE: Final = 64 * 1024


def drain_tls(tls: ssl.SSLObject, most: int) -> tuple[list[bytes], bool]:
    """Read at most `most` bytes, in pieces; True if a close_notify follows them."""
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
