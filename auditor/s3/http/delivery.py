"""Deliver the bytes of a body to its reader. Bytes that do not fit into one buffer wait until the reader brings the
next buffer.
"""

from __future__ import annotations

from collections import deque


class Delivery:
    """Puts the bytes of a body into the buffer of a waiting reader, and keeps the other bytes for later.

    position: number of bytes in the reader's buffer.
    """

    __slots__ = ("_kept", "_view", "position")

    def __init__(self) -> None:
        self._kept: deque[memoryview] = deque()
        self._view: memoryview | None = None
        self.position = 0

    @property
    def waits(self) -> bool:
        """True if a reader waits with a buffer."""
        return self._view is not None

    @property
    def full(self) -> bool:
        """True if a reader waits and its buffer is full."""
        return self._view is not None and self.position == len(self._view)

    def open(self, buffer: memoryview, position: int) -> None:
        """Take the buffer of a reader, who now waits. The buffer already has `position` bytes."""
        self._view, self.position = buffer, position

    def close(self) -> None:
        """Give up the buffer: its reader does not wait any more."""
        self._view = None

    def rest(self, left: int) -> memoryview | None:
        """Return the free part of the reader's buffer, at most `left` bytes of it; None if no reader waits.

        The caller writes into this part, and then increases `position` itself.
        """
        if self._view is None:
            return None
        end = self.position + left
        return self._view[self.position : end] if end < len(self._view) else self._view[self.position :]

    def hand(self, piece: memoryview) -> None:
        """Copy a piece of the body into the buffer, and keep the bytes that do not fit. The piece must not change
        later.
        """
        if self._view is not None:
            count = min(len(piece), len(self._view) - self.position)
            self._view[self.position : self.position + count] = piece[:count]
            self.position += count
            piece = piece[count:]
        if piece:
            self._kept.append(piece)

    def take(self, buffer: memoryview) -> int:
        """Move kept bytes into this buffer, and return their number; 0 if there are none."""
        count, size, kept = 0, len(buffer), self._kept
        while kept and count < size:
            piece = kept.popleft()
            fits = min(len(piece), size - count)
            buffer[count : count + fits] = piece[:fits]
            count += fits
            if fits < len(piece):
                kept.appendleft(piece[fits:])
        return count

    def forget(self) -> None:
        self._kept.clear()


class Flow:
    """Measures whether a body arrives fast enough.

    The body is too slow if fewer than `least` bytes a second come over `window` seconds in which its reader waits.
    """

    __slots__ = ("_bytes", "_least", "_position", "_since", "_waited", "window")

    def __init__(self, least: float, window: float) -> None:
        self._least = least
        self.window = window
        self._waited = self._since = 0.0
        self._bytes = self._position = 0

    def restart(self) -> None:
        """Set all counts to 0, because another body or another window begins."""
        self._waited = 0.0
        self._bytes = 0

    def wait(self, now: float, position: int) -> None:
        """Record that a reader begins to wait now, with `position` bytes in its buffer."""
        self._since, self._position = now, position

    def keeps_up(self, now: float, position: int) -> bool:
        """Count the bytes that the waiting reader got since the last call. Return False if the body is too slow.

        position: number of bytes in the reader's buffer now.
        """
        seconds, size = now - self._since, position - self._position
        self.wait(now, position)
        return self.enough(seconds, size)

    def enough(self, seconds: float, size: int) -> bool:
        """Count `size` bytes that came in `seconds` of waiting.

        Return False if this ends a window that had too few bytes.
        """
        self._waited += seconds
        self._bytes += size
        if self._waited < self.window:
            return True
        enough = self._bytes >= self._least * self._waited
        self.restart()
        return enough
