"""The command `auditor report`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from auditor.audit.report import page_again
from auditor.cli.options import settings_of
from auditor.cli.output import first_word
from auditor.errors import OutputError
from auditor.runs.reading import open_run
from auditor.text import visible


def run(options: argparse.Namespace) -> int:
    """Make the page of the run again, and write it to the file that the user names. Return 0."""
    settings = settings_of(options)
    connection = {"endpoint_url": settings.endpoint_url, "profile": settings.profile, "region": settings.region}
    first_word(f"reading the run {visible(options.run_folder)}")
    with open_run(options.run_folder, **connection) as opened:
        page = page_again(opened)
    if options.file == "-":
        sys.stdout.write(page)
        return 0
    try:
        Path(options.file).write_text(page, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise OutputError(f"{options.file!r} cannot be written ({error}): give another --out") from error
    sys.stdout.write(f"{visible(options.file)}\n")
    return 0
