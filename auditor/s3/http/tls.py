"""What TLS still holds when its connection has ended, and whether the server itself ended it: below TLS anybody can."""

from __future__ import annotations

import ssl
from typing import Final

_PIECE: Final = 64 * 1024


def drain_tls(tls: ssl.SSLObject, most: int) -> tuple[list[bytes], bool]:
    """At most so many bytes, in pieces; and whether the server's farewell follows them."""
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
