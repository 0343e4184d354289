"""Bytes of a body on their way to its reader: into the buffer that it gave, and kept for the next one where that is
full."""

from __future__ import annotations

from collections import deque


class Delivery:
    """position: bytes that are in the reader's buffer. waits: a reader has given one."""

    __slots__ = ("_spare", "_view", "position")

    def __init__(self) -> None:
        self._spare: deque[memoryview] = deque()
        self._view: memoryview | None = None
        self.position = 0

    @property
    def waits(self) -> bool:
        return self._view is not None

    @property
    def full(self) -> bool:
        return self._view is not None and self.position == len(self._view)

    def open(self, buffer: memoryview, position: int) -> None:
        """A reader waits for more, behind the bytes that it has."""
        self._view, self.position = buffer, position

    def close(self) -> None:
        """The buffer is its reader's again."""
        self._view = None

    def rest(self, left: int) -> memoryview | None:
        """What may still be filled by hand, at most `left` bytes of it; `position` is then the filler's to move."""
        if self._view is None:
            return None
        end = self.position + left
        return self._view[self.position : end] if end < len(self._view) else self._view[self.position :]

    def hand(self, piece: memoryview) -> None:
        """To the reader that waits, and what does not fit for the next one; the piece is not to change."""
        if self._view is not None:
            count = min(len(piece), len(self._view) - self.position)
            self._view[self.position : self.position + count] = piece[:count]
            self.position += count
            piece = piece[count:]
        if piece:
            self._spare.append(piece)

    def take(self, buffer: memoryview) -> int:
        """What had come before it was asked for, into this buffer; how many bytes."""
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
        """Nobody wants what was kept."""
        self._spare.clear()


class Flow:
    """Fewer than `least` bytes a second, over `window` seconds of waiting, are too few. It keeps no time itself."""

    __slots__ = ("_bytes", "_least", "_position", "_since", "_waited", "window")

    def __init__(self, least: float, window: float) -> None:
        self._least = least
        self.window = window
        self._waited = self._since = 0.0
        self._bytes = self._position = 0

    def restart(self) -> None:
        """Another body begins."""
        self._waited = 0.0
        self._bytes = 0

    def wait(self, now: float, position: int) -> None:
        """A reader waits from now on, with so many bytes in its buffer."""
        self._since, self._position = now, position

    def keeps_up(self, now: float, position: int) -> bool:
        """The reader, which waits still, has so many now; False as of `enough`."""
        seconds, size = now - self._since, position - self._position
        self.wait(now, position)
        return self.enough(seconds, size)

    def enough(self, seconds: float, size: int) -> bool:
        """So many bytes came while a reader waited for so long; False when a window has passed with too few."""
        self._waited += seconds
        self._bytes += size
        if self._waited < self.window:
            return True
        enough = self._bytes >= self._least * self._waited
        self.restart()
        return enough
