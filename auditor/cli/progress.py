"""Show the progress on stderr: on a terminal as a line that moves, elsewhere as one line per minute; and tell the
width, the colours and the hyperlinks of the terminal on stdout.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, suppress
from typing import Final, TextIO

from auditor.cli.output import heard, status, talk
from auditor.config.settings import Settings
from auditor.offline.formats.base import PLAIN, FormatOptions
from auditor.progress import Snapshot, reporting
from auditor.reports.text_table import linked
from auditor.text import counted, shorten, visible

_LINKING: Final = ("VTE_VERSION", "KONSOLE_VERSION", "WT_SESSION", "KITTY_WINDOW_ID", "ITERM_SESSION_ID")
"""Variables that terminals with hyperlinks set: GNOME's and others by VTE, Konsole, Windows Terminal, kitty, iTerm2."""
_LINKING_PROGRAMS: Final = frozenset({"iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio"})
_LINKING_TERMS: Final = ("alacritty", "foot", "xterm-kitty", "xterm-ghostty", "wezterm")

SECONDS_BETWEEN_LINES: Final = 60.0
_LEAST_NAME: Final = 12

Count = Callable[[], Snapshot]
Show = Callable[[Count], AbstractAsyncContextManager[None]]
"""A function that returns a context manager, which shows the snapshots of the work in its `with` block. Its argument
makes a snapshot.
"""


def columns(stream: TextIO | None = None) -> int:
    """Return the width of the terminal, or that of PLAIN if the stream is none. stream: None for stdout."""
    shown = stream or sys.stdout
    if not shown.isatty():
        return PLAIN.columns
    own = (80, 24)
    with suppress(OSError):  # no descriptor
        own = os.get_terminal_size(shown.fileno())
    return shutil.get_terminal_size(own).columns


def shows_colour(stream: TextIO | None = None, environment: Mapping[str, str] = os.environ) -> bool:
    """True if the stream is a terminal that shows colours, or if the user forces them (https://force-color.org), but
    never for a user who asks for none (https://no-color.org).

    stream: None for stdout.
    """
    return not environment.get("NO_COLOR") and (bool(environment.get("FORCE_COLOR")) or obeys(stream, environment))


def shows_links(stream: TextIO | None = None, environment: Mapping[str, str] = os.environ) -> bool:
    """True if the stream is a terminal that is known to show hyperlinks, and the user has not asked for plain text."""
    program, term = environment.get("TERM_PROGRAM"), environment.get("TERM", "")
    known = program in _LINKING_PROGRAMS or term.startswith(_LINKING_TERMS) or any(map(environment.get, _LINKING))
    return known and obeys(stream, environment) and not environment.get("NO_COLOR")


def obeys(stream: TextIO | None, environment: Mapping[str, str] = os.environ) -> bool:
    """True if the stream is a terminal that obeys escape sequences. stream: None for stdout."""
    return (stream or sys.stdout).isatty() and environment.get("TERM") not in (None, "", "dumb")


def whole(place: str) -> str:
    """Return the absolute path of a local place, or a URI as it is."""
    return place if "://" in place else os.path.abspath(place)


def named_place(place: str) -> str:
    """Return a place to print on stdout: whole, safe, and a link where the terminal shows links."""
    return linked(visible(whole(place)), whole(place) if shows_links() else "")


def options_of(settings: Settings, place: str, verbose: int) -> FormatOptions:
    """Return the options of a format for stdout. place: of the run folder. verbose: the number of -v."""
    return FormatOptions(
        fail_on=settings.fail_on,
        columns=columns(),
        colour=shows_colour(),
        links=shows_links(),
        verbose=bool(verbose),
        folder=whole(place),
    )


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
        if snapshot.done or snapshot.seconds - self._last >= SECONDS_BETWEEN_LINES:
            self._last = 0.0 if snapshot.done else snapshot.seconds
            self._stream.write(f"auditor: {snapshot.what}: {snapshot.words}\n")
            self._stream.flush()


class Moving(Progress):
    """Shows the progress on the last line of a terminal. If it is too long, the name of the work is cut."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def update(self, snapshot: Snapshot) -> None:
        if snapshot.done:
            self.close()
            return
        room, words = columns(self._stream) - 1, snapshot.words
        what = shorten(snapshot.what, max(_LEAST_NAME, room - len(words) - 2))
        status.show(self._stream, shorten(f"{what}: {words}", room))

    def close(self) -> None:
        status.clear()


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
    """Return a Progress that shows nothing if the user wants none, one that moves on a terminal, else Lines. stream:
    None for stderr.
    """
    if talk.quiet or not talk.progress:
        return Progress()
    stream = sys.stderr if stream is None else stream
    return Moving(stream) if obeys(stream) else Lines(stream)


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
    time, as done, if the block ends without an error; on a terminal the line is then removed.
    """

    def update(snapshot: Snapshot) -> None:
        if snapshot.heard or snapshot.objects:
            heard()
        progress.update(snapshot)

    return reporting(count, update, ends=ends)
