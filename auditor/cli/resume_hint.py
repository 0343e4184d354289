"""The command that goes on with a run, written so that a shell takes it as it is."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

from auditor.config.settings import SETTINGS
from auditor.model.target import Target

_NO_FLAGS: Final = frozenset({"command", "run", "targets", "resume", "verbose"})


def resume_command(options: argparse.Namespace, target: Target, run_id: str) -> str:
    """This very command for one of its targets, with --resume."""
    words = ["audit", target.uri]
    for name, value in vars(options).items():
        if name in _NO_FLAGS or value is None or (name, value) == ("format", "table"):
            continue
        flag = SETTINGS[name].option if name in SETTINGS else f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        else:
            words.extend([f"{flag}={value}"] if value.startswith("-") else [flag, value])
    words.extend(["-v"] * options.verbose)
    words.extend(["--resume", run_id])
    return f"{_program()} {' '.join(map(_quoted, words))}"


def _program() -> str:
    """As it was called, or by its name where that finds it."""
    called = Path(sys.argv[0])
    if called.parts[-2:] == ("auditor", "__main__.py"):
        return f"{_quoted(sys.executable)} -m auditor"
    if called.name == "auditor" and shutil.which("auditor") != sys.argv[0]:
        return _quoted(sys.argv[0])
    return "auditor"


def _quoted(word: str) -> str:
    """For a shell; what would move the cursor is written as bash and zsh read it."""
    if word.isprintable():
        return shlex.quote(word)
    return f"$'{''.join(map(_escaped, word))}'"


def _escaped(character: str) -> str:
    if character in "'\\":
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08x}"
