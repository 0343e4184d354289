"""Where the head of an answer ends, in bytes that come in any pieces."""

from __future__ import annotations

from typing import Final

_END: Final = b"\r\n\r\n"
_SPLIT: Final = len(_END) - 1


class EmptyLine:
    """Looks for the empty line that ends a head."""

    __slots__ = ("_tail",)

    def __init__(self) -> None:
        self._tail = b""

    def restart(self) -> None:
        self._tail = b""

    def end(self, data: bytearray, start: int, size: int) -> int:
        """Where in data[start:size] the empty line ends that comes next, which may have begun in the bytes that were
        looked at before; 0: not there."""
        found = self._across(data, start, size)
        if not found:
            at = data.find(_END, start, size)
            found = 0 if at < 0 else at + len(_END)
        self._tail = b"" if found else (self._tail + data[max(start, size - _SPLIT) : size])[-_SPLIT:]
        return found

    def _across(self, data: bytearray, start: int, size: int) -> int:
        tail = self._tail
        if not tail:
            return 0
        at = (tail + data[start : min(size, start + _SPLIT)]).find(_END)
        return 0 if at < 0 else start + at + len(_END) - len(tail)
