"""The command `auditor check`."""

from __future__ import annotations

import argparse
import time

from msgspec.structs import asdict

from auditor.cli.options import settings_of
from auditor.cli.output import print_result
from auditor.cli.progress import make_progress
from auditor.cli.reading import reading
from auditor.progress import Snapshot
from auditor.runs.checking import RunCheck, RunChecker
from auditor.text import counted, visible


def run(options: argparse.Namespace) -> int:
    """Check the run folder, print the result, and return its exit code: 1 for a fault, 4 if something is not there to
    check, 0 if the run is whole.
    """
    settings = settings_of(options)
    progress, started = make_progress(), time.monotonic()
    what = visible(options.run_folder)
    try:
        with reading(options.run_folder, settings) as opened:
            found = RunChecker(
                opened,
                lambda objects: progress.update(
                    Snapshot(what=what, objects=objects, seconds=time.monotonic() - started)
                ),
            ).run()
    finally:
        progress.close()
    document = {**asdict(found), "whole": not found.exit_code}
    print_result(options.format, document, lambda: "".join(f"{line}\n" for line in _lines(found)))
    return found.exit_code


def _lines(found: RunCheck) -> list[str]:
    seen = f"{counted(found.parts, 'file')} of lines, {counted(found.lines, 'line')}"
    verdict = "ALTERED" if found.faults else "not proved whole" if found.lacks else "whole"
    lines = [f"run {found.run}: {verdict}; {seen}"]
    lines += [f"  fault: {sentence}" for sentence in found.faults]
    lines += [f"  not checked: {sentence}" for sentence in found.lacks]
    if found.chain:
        lines.append(f"  chain: {counted(len(found.chain), 'earlier run')}, back to {found.chain[-1]}")
    if found.sha256 is not None:
        lines.append(f"  SHA-256 of summary.json: {found.sha256}")
    return lines
