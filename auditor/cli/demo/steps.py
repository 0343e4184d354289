"""A step's progress on stderr: one line that is written anew on a terminal, else a line at each quarter."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Final, TextIO

_QUARTERS: Final = 4


class Steps:
    """what: "loading"; of: "objects". Use it in a `with`; update() as often as you like."""

    def __init__(self, what: str, of: str, stream: TextIO | None = None) -> None:
        self._what = what
        self._of = of
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._shown = 0

    def __enter__(self) -> Steps:
        return self

    def update(self, done: int, total: int) -> None:
        """done: of total."""
        text = f"{self._what}: {done:,} of {total:,} {self._of}"
        if self._terminal:
            self._write(f"\r{text}\x1b[K")
            return
        quarter = done * _QUARTERS // total if total else 0
        if quarter > self._shown:
            self._shown = quarter
            self._write(f"{text}\n")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._terminal:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
