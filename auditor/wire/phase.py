"""What a streaming connection is at."""

from __future__ import annotations

import enum


class Phase(enum.Enum):
    IDLE = enum.auto()
    HEAD = enum.auto()
    BODY = enum.auto()
    WHOLE = enum.auto()
    """All of the body came; the reader may not have it all yet."""
    DRAIN = enum.auto()
    """The reader has left; the rest of the body is on its way."""
