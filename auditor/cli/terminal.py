"""The terminal on stdout: its width, and whether it shows colours and hyperlinks."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, TextIO

from auditor.config.settings import Settings
from auditor.offline.formats.base import PLAIN, FormatOptions
from auditor.reports.text_table import linked
from auditor.text import visible

_LINKING: Final = ("VTE_VERSION", "KONSOLE_VERSION", "WT_SESSION", "KITTY_WINDOW_ID", "ITERM_SESSION_ID")
"""Variables that terminals with hyperlinks set: GNOME's and others by VTE, Konsole, Windows Terminal, kitty, iTerm2."""
_LINKING_PROGRAMS: Final = frozenset({"iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio"})
_LINKING_TERMS: Final = ("alacritty", "foot", "xterm-kitty", "xterm-ghostty", "wezterm")


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
