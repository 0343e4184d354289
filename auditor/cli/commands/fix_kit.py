"""The command `auditor fix-kit`."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys

from auditor.aio.stop import Stop
from auditor.audit.kit.prepare import FixKit
from auditor.audit.kit.readme import table
from auditor.audit.kit.result import Kit
from auditor.cli import signals
from auditor.cli.options import settings_of
from auditor.cli.output import first_word, print_json
from auditor.cli.progress import make_progress, showing
from auditor.config.settings import Settings
from auditor.reports.table import COLUMNS
from auditor.runs.folder_place import open_run
from auditor.text import visible


def run(options: argparse.Namespace) -> int:
    """Write the kit of a run, print what was written, and return the exit code."""
    kit = signals.run(_write(options, settings_of(options)))
    if options.format == "json":
        print_json(kit.to_dict())
    else:
        sys.stdout.write(table(kit, shutil.get_terminal_size().columns if sys.stdout.isatty() else COLUMNS))
    return kit.exit_code


async def _write(options: argparse.Namespace, settings: Settings) -> Kit:
    stop, progress = Stop(grace=signals.GRACE), make_progress()
    signals.stop_on_signals(stop)
    first_word(f"reading the run {visible(options.run_folder)}")
    connection = {"endpoint_url": settings.endpoint_url, "profile": settings.profile, "region": settings.region}
    with open_run(options.run_folder, **connection) as opened:
        work = FixKit(opened, options.kit, stop.is_set)
        try:
            async with showing(progress, work.snapshot, ends=False):
                return await asyncio.to_thread(work.write)
        finally:
            progress.close()
