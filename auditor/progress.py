"""Progress on stderr: a bar on a terminal, else a line a minute; never anything on stdout."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Final, Protocol, TextIO

from auditor.reports.words import counted

SECONDS_BETWEEN_LINES: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Long work at one moment. what: what is worked on, safe to print. objects: how many are done. detail: more counts.

    expected: how many there were the last time, None where nobody knows. done: this is the end.
    """

    what: str
    objects: int
    seconds: float
    detail: str = ""
    expected: int | None = None
    done: bool = False

    @property
    def rate(self) -> float:
        """Objects a second since the start."""
        return self.objects / self.seconds if self.seconds > 0 else 0.0

    @property
    def eta(self) -> float | None:
        """Seconds to go, as far as the last time can tell."""
        if not self.expected or not self.rate or self.objects >= self.expected:
            return None
        return (self.expected - self.objects) / self.rate

    @property
    def words(self) -> str:
        """One line: counts only, never a key."""
        parts = [counted(self.objects, "object"), f"{self.rate:,.0f}/s"]
        if self.eta is not None:
            parts.append(f"about {clock(self.eta)} to go")
        return ", ".join([*parts, self.detail] if self.detail else parts)


def clock(seconds: float) -> str:
    """Hours, minutes and seconds as 1:02:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Progress(Protocol):
    def update(self, snapshot: Snapshot) -> None: ...
    def close(self) -> None: ...


class Lines:
    """A line a minute, for logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last = 0.0

    def update(self, snapshot: Snapshot) -> None:
        if snapshot.done:
            self._last = 0.0
        if snapshot.done or snapshot.seconds - self._last >= SECONDS_BETWEEN_LINES:
            self._last = 0.0 if snapshot.done else snapshot.seconds
            self._stream.write(f"{snapshot.what}: {snapshot.words}\n")
            self._stream.flush()

    def close(self) -> None:
        """Nothing is held."""


class Bar:
    """A bar on a terminal, with rich (the `cli` extra)."""

    def __init__(self, rich_progress: Any, rich_console: Any) -> None:
        self._bar = rich_progress.Progress(
            rich_progress.SpinnerColumn(),
            rich_progress.TextColumn("{task.description}", markup=False),
            rich_progress.BarColumn(bar_width=24),
            rich_progress.TextColumn("{task.fields[words]}", markup=False),
            console=rich_console,
            transient=True,
        )
        self._task: Any = None

    def update(self, snapshot: Snapshot) -> None:
        if self._task is None:
            self._bar.start()
            self._task = self._bar.add_task(snapshot.what, total=snapshot.expected, words="")
        self._bar.update(self._task, completed=snapshot.objects, words=snapshot.words)
        if snapshot.done:
            self._bar.remove_task(self._task)
            self.close()
            self._task = None

    def close(self) -> None:
        self._bar.stop()


def make_progress(stream: TextIO | None = None) -> Progress:
    """What fits the stream (stderr); a terminal without rich gets lines too."""
    stream = sys.stderr if stream is None else stream
    if stream.isatty():
        try:
            from rich import console, progress
        except ImportError:
            return Lines(stream)
        return Bar(progress, console.Console(file=stream))
    return Lines(stream)
