"""`auditor demo`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from auditor.cli.demo.run import run_tour
from auditor.config.settings import Settings
from auditor.config.values import engine
from auditor.errors import UsageError
from auditor.s3.engines import DEFAULT_ENGINE

SHOWN: Final = 10
"""Differences that are named one by one."""


def run(options: argparse.Namespace) -> int:
    """0: all that was planted was found and nothing else, and nothing is left to hash. 1: it was not. 4: Ctrl-C."""
    name = engine(options.engine or DEFAULT_ENGINE, "--engine")
    out = options.out or Settings().out
    if "://" in out:
        raise UsageError(f"--out {out} is not a directory: the demo reaches no store outside this machine")
    try:
        differences = run_tour(options.source, name, out)
    except KeyboardInterrupt:
        sys.stderr.write("auditor: the demo was interrupted; nothing of it is left but its folder of runs\n")
        return 4
    return end(differences)


def end(differences: Sequence[str]) -> int:
    """The exit code; says on stderr what differs."""
    for sentence in differences[:SHOWN]:
        sys.stderr.write(f"auditor: {sentence}\n")
    if len(differences) > SHOWN:
        sys.stderr.write(f"auditor: and {len(differences) - SHOWN} differences more\n")
    return 1 if differences else 0
