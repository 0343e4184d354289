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
