"""Run a command at a terminal of a given width: in a pseudo-terminal of the operating system."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.support.paths import ROOT

_KEYS: Final = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_REGION": "us-east-1"}
_SHELL: Final = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM_PROGRAM", "VTE_VERSION")


@contextmanager
def at_terminal(
    folder: Path, *arguments: str, columns: int, environment: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start `auditor` with a terminal as its stdout, and yield the process and the terminal's descriptor. Its stderr
    goes to a pipe. environment: variables of the terminal, such as TERM.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    inherited = {name: value for name, value in os.environ.items() if name not in _SHELL}
    with subprocess.Popen(
        [sys.executable, "-m", "auditor", *arguments],
        cwd=folder,
        env={**inherited, **_KEYS, "PYTHONPATH": str(ROOT), **environment},
        stdout=theirs,
        stderr=subprocess.PIPE,
    ) as child:
        os.close(theirs)
        try:
            yield child, ours
        finally:
            child.kill()
            os.close(ours)


def screen(folder: Path, *arguments: str, columns: int = 80, **environment: str) -> tuple[int, str]:
    """Return the exit code of a command, and the text that it writes to a terminal on stdout."""
    with at_terminal(folder, *arguments, columns=columns, environment={"TERM": "xterm"} | environment) as (child, ours):
        text = b"".join(pieces(ours))
        child.communicate()
    return child.returncode, text.decode().replace("\r\n", "\n")


def pieces(terminal: int) -> Iterator[bytes]:
    """Yield the text that comes to a terminal, until its program ends."""
    with suppress(OSError):  # EIO: nobody has the other end open any more
        while piece := os.read(terminal, 65536):
            yield piece
