"""The terminal on stdout: its width, and whether it shows colours."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from typing import TextIO

from auditor.config.settings import Settings
from auditor.reports.formats.base import PLAIN, FormatOptions


def columns(stream: TextIO | None = None) -> int:
    """Return the width of the terminal, or that of PLAIN if the stream is none. stream: None for stdout."""
    return shutil.get_terminal_size().columns if (stream or sys.stdout).isatty() else PLAIN.columns


def shows_colour(stream: TextIO | None = None, environment: Mapping[str, str] | None = None) -> bool:
    """True if the stream is a terminal that shows colours, and the user has not asked for none (https://no-color.org).

    stream: None for stdout. environment: None for the process's own.
    """
    found = os.environ if environment is None else environment
    return (stream or sys.stdout).isatty() and not found.get("NO_COLOR") and found.get("TERM") not in (None, "", "dumb")


def options_of(settings: Settings) -> FormatOptions:
    """Return the options of a format for stdout."""
    return FormatOptions(fail_on=settings.fail_on, columns=columns(), colour=shows_colour())
