"""Whether a body comes fast enough to be waited for."""

from __future__ import annotations


class Flow:
    """Fewer than `least` bytes a second, over `window` seconds of waiting, are too few. It keeps no time itself."""

    __slots__ = ("_bytes", "_least", "_waited", "window")

    def __init__(self, least: float, window: float) -> None:
        self._least = least
        self.window = window
        self._waited = 0.0
        self._bytes = 0

    def restart(self) -> None:
        """Another body begins."""
        self._waited = 0.0
        self._bytes = 0

    def enough(self, seconds: float, size: int) -> bool:
        """So many bytes came while a reader waited for so long; False when a window has passed with too few."""
        self._waited += seconds
        self._bytes += size
        if self._waited < self.window:
            return True
        enough = self._bytes >= self._least * self._waited
        self.restart()
        return enough
