"""The command `auditor demo`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from auditor.cli.demo.run import run_tour
from auditor.cli.flags import Flags
from auditor.cli.output import say
from auditor.cli.process_end import GivenUp
from auditor.config.settings import Settings
from auditor.config.values import engine
from auditor.errors import UsageError
from auditor.s3.engines import DEFAULT_ENGINE

SHOWN: Final = 10
"""Largest number of differences that are printed."""


def declare_demo(flags: Flags) -> None:
    """Declare the flags of `auditor demo`.

    auditor demo
    auditor demo --from ~/Documents --engine boto3
    """
    flags.add("--from DIR", "fill the bucket with these files (the sources of Python's standard library)", dest="files")
    flags.settings("engine")
    flags.add("--out DIR", "where the run folders go (./auditor-runs)")


def run_demo(options: argparse.Namespace) -> int:
    """Run the demo. Return 0 if the results are exactly the expected ones, 1 if they differ, 4 after Ctrl-C."""
    name = engine(options.engine or DEFAULT_ENGINE, "--engine")
    out = options.out or Settings().out
    if "://" in out:
        raise UsageError(f"--out {out} is not a directory: the demo reaches no store outside this machine")
    try:
        differences = run_tour(options.files, name, out)
    except (KeyboardInterrupt, GivenUp):
        say("the demo was interrupted; only its folder of runs is left")
        return 4
    return end(differences)


def end(differences: Sequence[str]) -> int:
    """Print how the demo's results differ from the expected ones on stderr; return 1 if they differ, else 0."""
    for sentence in differences[:SHOWN]:
        say(sentence)
    if len(differences) > SHOWN:
        say(f"and {len(differences) - SHOWN} differences more")
    return 1 if differences else 0
