"""The command `auditor fix-kit`."""

from __future__ import annotations

import argparse
import asyncio

from auditor.audit.kit.prepare import FixKit
from auditor.audit.kit.readme import table
from auditor.audit.kit.result import Kit
from auditor.cli import signals
from auditor.cli.options import settings_of
from auditor.cli.output import print_result
from auditor.cli.progress import shown
from auditor.cli.reading import reading
from auditor.cli.terminal import columns
from auditor.config.settings import Settings


def run(options: argparse.Namespace) -> int:
    """Write the kit of a run, print what was written, and return the exit code."""
    kit = signals.run(_write(options, settings_of(options)))
    print_result(options.format, kit.to_dict(), lambda: table(kit, columns()))
    return kit.exit_code


async def _write(options: argparse.Namespace, settings: Settings) -> Kit:
    stop = signals.stop_on_signals()
    with reading(options.run_folder, settings) as opened:
        work = FixKit(opened, options.kit, stop.is_set)
        async with shown(work.snapshot):
            return await asyncio.to_thread(work.write)
