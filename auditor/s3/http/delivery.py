"""Hand the bytes of a body to its reader: into the reader's buffer, and the rest into spare pieces."""

from __future__ import annotations

from collections import deque


class Delivery:
    """The buffer of the waiting reader, and spare pieces. position: bytes that are in the buffer."""

    __slots__ = ("_spare", "_view", "position")

    def __init__(self) -> None:
        self._spare: deque[memoryview] = deque()
        self._view: memoryview | None = None
        self.position = 0

    @property
    def waits(self) -> bool:
        """A reader waits with a buffer."""
        return self._view is not None

    @property
    def full(self) -> bool:
        return self._view is not None and self.position == len(self._view)

    def open(self, buffer: memoryview, position: int) -> None:
        """Take the buffer of a reader that waits, with `position` bytes in it."""
        self._view, self.position = buffer, position

    def close(self) -> None:
        """Give the buffer back to its reader."""
        self._view = None

    def rest(self, left: int) -> memoryview | None:
        """The free part of the buffer, at most `left` bytes, for a caller that fills it and moves `position` itself."""
        if self._view is None:
            return None
        end = self.position + left
        return self._view[self.position : end] if end < len(self._view) else self._view[self.position :]

    def hand(self, piece: memoryview) -> None:
        """Copy a piece into the buffer and keep the rest of it, which must not change later, as a spare piece."""
        if self._view is not None:
            count = min(len(piece), len(self._view) - self.position)
            self._view[self.position : self.position + count] = piece[:count]
            self.position += count
            piece = piece[count:]
        if piece:
            self._spare.append(piece)

    def take(self, buffer: memoryview) -> int:
        """Copy spare pieces into this buffer; the number of bytes."""
        count, size, spare = 0, len(buffer), self._spare
        while spare and count < size:
            piece = spare.popleft()
            fits = min(len(piece), size - count)
            buffer[count : count + fits] = piece[:fits]
            count += fits
            if fits < len(piece):
                spare.appendleft(piece[fits:])
        return count

    def forget(self) -> None:
        """Drop the spare pieces."""
        self._spare.clear()


class Flow:
    """Finds bodies that arrive too slowly: under `least` bytes per second over `window` seconds of waiting."""

    __slots__ = ("_bytes", "_least", "_position", "_since", "_waited", "window")

    def __init__(self, least: float, window: float) -> None:
        self._least = least
        self.window = window
        self._waited = self._since = 0.0
        self._bytes = self._position = 0

    def restart(self) -> None:
        """Begin another body."""
        self._waited = 0.0
        self._bytes = 0

    def wait(self, now: float, position: int) -> None:
        """A reader begins to wait now, with `position` bytes in its buffer."""
        self._since, self._position = now, position

    def keeps_up(self, now: float, position: int) -> bool:
        """False if the waiting reader, with `position` bytes now, got too few in the window."""
        seconds, size = now - self._since, position - self._position
        self.wait(now, position)
        return self.enough(seconds, size)

    def enough(self, seconds: float, size: int) -> bool:
        """Count bytes and seconds of waiting; False if a window has passed with too few bytes."""
        self._waited += seconds
        self._bytes += size
        if self._waited < self.window:
            return True
        enough = self._bytes >= self._least * self._waited
        self.restart()
        return enough
