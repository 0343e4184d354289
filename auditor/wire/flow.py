"""Whether a body comes fast enough to be waited for."""

from __future__ import annotations


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
