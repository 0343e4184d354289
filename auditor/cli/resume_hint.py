"""Make the shell command that resumes a run."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

from auditor.cli.output import say
from auditor.config.settings import SETTINGS
from auditor.model.target import Target
from auditor.text import harmless

_NO_FLAGS: Final = frozenset({"command", "run", "targets", "resume", "verbose"})
_ODD: Final = "(a key or a path in it has characters that do not print: they are escaped here, give them as they are)"


def resume_command(options: argparse.Namespace, target: Target | None, run_id: str) -> str:
    """Return the shell command that resumes the run of this target, with the user's other flags. Unprintable characters
    in the command are escaped; a second line then says so. target: None for the start of an estate.
    """
    words = ["audit", *([] if target is None or vars(options).get("fill") else [target.uri])]
    for name, value in vars(options).items():
        if name in _NO_FLAGS or value in (None, False) or (name, value) == ("format", "table"):
            continue
        flag = SETTINGS[name].option if name in SETTINGS else f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        else:
            text = str(value)
            words.extend([f"{flag}={text}"] if text.startswith("-") else [flag, text])
    words.extend(["-v"] * options.verbose)
    words.extend(["--resume", run_id])
    command = f"{_program()} {shlex.join(words)}"
    return command if command.isprintable() else f"{harmless(command)}\n{_ODD}"


def offer_to_resume(reason: str, options: argparse.Namespace, target: Target | None, run_id: str) -> None:
    """Print why a run is not complete, and the command that resumes it, as resume_command() makes it."""
    command, *odd = resume_command(options, target, run_id).splitlines()
    for sentence in (f"not complete: {reason}; go on with: {command}", *odd):
        say(sentence)


def _program() -> str:
    """Return the program as the user has to type it: `auditor` if the shell finds that, else the path, quoted."""
    called = Path(sys.argv[0])
    if called.parts[-2:] == ("auditor", "__main__.py"):
        return f"{shlex.quote(sys.executable)} -m auditor"
    if called.name == "auditor" and shutil.which("auditor") != sys.argv[0]:
        return shlex.quote(sys.argv[0])
    return "auditor"
