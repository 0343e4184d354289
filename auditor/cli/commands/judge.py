"""The command `auditor judge`."""

from __future__ import annotations

import argparse
import asyncio
from contextlib import nullcontext
from typing import Final

from auditor.audit.again import JudgeAgain
from auditor.audit.judged_by import judged_by
from auditor.cli import signals
from auditor.cli.options import settings_of
from auditor.cli.output import print_text, say
from auditor.cli.progress import shown
from auditor.cli.reading import reading
from auditor.cli.terminal import options_of
from auditor.config.layers import Layer
from auditor.config.settings import SETTINGS, Settings
from auditor.model.summary import Summary
from auditor.reports.formats import FORMATS
from auditor.reports.summary import exit_code
from auditor.runs.bucket_file import NAME
from auditor.runs.reading import RunReader
from auditor.runs.stores import Store, open_store
from auditor.text import visible

_JUDGING: Final = ("only", "ignore", "level", "semantics")


def run(options: argparse.Namespace) -> int:
    """Judge the run again, print the summary of the new run folder, and return the exit code of an audit."""
    settings = settings_of(options)
    return signals.run(_judge(options, settings))


async def _judge(options: argparse.Namespace, settings: Settings) -> int:
    stop = signals.stop_on_signals()
    with reading(options.run_folder, settings) as source:
        given = Layer({name: vars(options)[name] for name in _JUDGING}, lambda name: SETTINGS[name].option)
        file = await asyncio.to_thread(lambda: source.begun_with)
        by = judged_by(
            file,
            f"{source.uri}/{NAME}",
            given,
            options.config,
            anew=options.all_rules,
            trust=options.trust or (),
        )
        with nullcontext(source.store) if options.out is None else _store(options.out, settings) as out:
            work = JudgeAgain(source, out, by, stop.is_set)
            async with shown(work.snapshot, ends=True):
                summary = await asyncio.to_thread(work.run)
            _print(summary, RunReader(out, source.bucket_name, summary.run), options, settings)
    return exit_code(summary, settings.fail_on)


def _store(place: str, settings: Settings) -> Store:
    store = open_store(place, **settings.connection)
    store.check_writable()
    return store


def _print(summary: Summary, written: RunReader, options: argparse.Namespace, settings: Settings) -> None:
    print_text("".join(FORMATS[options.format](summary, written, options_of(settings))))
    say(f"run {summary.run}: judged again from {visible(options.run_folder)}")
