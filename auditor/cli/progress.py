"""Show the progress on stderr: as a bar on a terminal, elsewhere as one line per minute."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from typing import Any, Final, TextIO

from auditor.cli.output import heard, talk
from auditor.progress import Snapshot, reporting
from auditor.text import counted

SECONDS_BETWEEN_LINES: Final = 60.0

Count = Callable[[], Snapshot]
Show = Callable[[Count], AbstractAsyncContextManager[None]]
"""A function that returns a context manager, which shows the snapshots of the work in its `with` block. Its argument
makes a snapshot.
"""


class Progress:
    """Shows nothing, for a user who wants no progress."""

    def update(self, snapshot: Snapshot) -> None:
        """Show the progress at this moment."""

    def close(self) -> None:
        """End the display."""


class Lines(Progress):
    """Shows the progress as one line per minute, for logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last = 0.0

    def update(self, snapshot: Snapshot) -> None:
        if snapshot.done:
            self._last = 0.0
        if snapshot.done or snapshot.seconds - self._last >= SECONDS_BETWEEN_LINES:
            self._last = 0.0 if snapshot.done else snapshot.seconds
            self._stream.write(f"auditor: {snapshot.what}: {snapshot.words}\n")
            self._stream.flush()


class Bar(Progress):
    """Shows the progress as a bar on a terminal, with the package rich (the `cli` extra)."""

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
        self._bar.update(self._task, total=snapshot.expected, completed=snapshot.objects, words=snapshot.words)
        if snapshot.done:
            self.close()

    def close(self) -> None:
        self._bar.stop()
        if self._task is not None:
            self._bar.remove_task(self._task)
            self._task = None


class Together:
    """Sums up the progress of targets that are worked on side by side. number: of all targets."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._running: list[Count] = []
        self._ended = self._objects = 0
        self._started = time.monotonic()

    @asynccontextmanager
    async def show(self, count: Count) -> AsyncIterator[None]:
        """Count the work in the `with` block as running. count: makes a snapshot of it."""
        self._running.append(count)
        try:
            yield
        finally:
            self._running.remove(count)
            self._objects += count().objects
            self._ended += 1

    def snapshot(self) -> Snapshot:
        running = [count() for count in self._running]
        return Snapshot(
            what=counted(self._number, "target"),
            objects=self._objects + sum(one.objects for one in running),
            seconds=time.monotonic() - self._started,
            detail=f"{self._ended:,} ended, {len(running):,} running",
            heard=bool(self._ended) or any(one.heard for one in running),
        )


def make_progress(stream: TextIO | None = None) -> Progress:
    """Return a Progress that shows nothing if the user wants none, a Bar if the stream is a terminal and rich is
    installed, else Lines.

    stream: None for stderr.
    """
    if talk.quiet or not talk.progress:
        return Progress()
    stream = sys.stderr if stream is None else stream
    if stream.isatty():
        try:
            from rich import console, progress  # dear, and not always installed
        except ImportError:
            return Lines(stream)
        return Bar(progress, console.Console(file=stream))
    return Lines(stream)


def counting(what: str, objects: Callable[[], int]) -> Count:
    """Return a function that makes a snapshot of work that begins now. what: as in Snapshot. objects: returns how many
    are done.
    """
    began = time.monotonic()
    return lambda: Snapshot(what=what, objects=objects(), seconds=time.monotonic() - began)


@asynccontextmanager
async def shown(count: Count, *, ends: bool = False) -> AsyncIterator[None]:
    """Show the progress of the `with` block on stderr, and clear it at the end. ends: as for showing()."""
    with closing(make_progress()) as progress:
        async with showing(progress, count, ends=ends):
            yield


def showing(progress: Progress, count: Count, *, ends: bool = True) -> AbstractAsyncContextManager[None]:
    """Return a context manager that shows the progress of its `with` block each second. ends: True to show it a last
    time, as done, if the block ends without an error; a bar is then removed.
    """

    def update(snapshot: Snapshot) -> None:
        if snapshot.heard or snapshot.objects:
            heard()
        progress.update(snapshot)

    return reporting(count, update, ends=ends)
