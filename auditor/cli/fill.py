"""The flag --fill of `auditor audit`: fill a run, and print the summary of the new one."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from auditor.aio.stop import Stop
from auditor.audit.fill import complete_summary, fill_audit, has_holes
from auditor.cli import signals
from auditor.cli.audit_way import announce, remark_on
from auditor.cli.each_target import each_target
from auditor.cli.output import print_text, say
from auditor.cli.progress import Show
from auditor.cli.terminal import options_of
from auditor.config.resources import Resources, check_output
from auditor.config.settings import SETTINGS, Settings
from auditor.errors import RunComplete, UsageError
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.reports.formats import FORMATS
from auditor.reports.summary import exit_code
from auditor.runs.folder_place import latest_place, open_run
from auditor.runs.reading import RunReader
from auditor.text import visible

_OF_THE_RUN: Final = (
    *("versions", "start_after", "stop_at", "level", "only", "ignore", "semantics", "key_policies", "out"),
    *("ledger", "algorithms", "queue", "hash", "accept_cost", "streams"),
    *("batch_over", "batch_manifest", "batch_role", "keep", "every", "jobs"),
)
"""The options that are those of the filled run, or mean nothing for it."""


def fill(options: argparse.Namespace, settings: Settings) -> int:
    """Fill the run, print the summary of the new run, and return the exit code of an audit."""
    if options.targets:
        raise UsageError("--fill RUN asks again about the objects of that run: leave the target away")
    for name in _OF_THE_RUN:
        if vars(options)[name] is not None:
            flag = SETTINGS[name].option if name in SETTINGS else f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag} does not go with --fill, which takes it from the run: leave it away")
    return signals.run(_fill(options, settings))


async def _fill(options: argparse.Namespace, settings: Settings) -> int:
    with open_run(latest_place(options.fill, settings.out, **settings.connection), **settings.connection) as run:
        if not await asyncio.to_thread(has_holes, run):
            return await _read_back(run, options, settings, "nothing is undecided: no call was sent")
        target = (await asyncio.to_thread(lambda: run.begun_with)).target
        return await each_target(
            [target],
            _resources(run, target),
            partial(_one, run, options, settings),
            verb="filled",
            kept=f"run {run.run_id} is as it was, and what was written is in place",
        )


@asynccontextmanager
async def _resources(run: RunReader, target: Target) -> AsyncIterator[Resources]:
    check_output(run.store, [target], "the place of the run")
    yield Resources(store=run.store)


async def _one(
    run: RunReader,
    options: argparse.Namespace,
    settings: Settings,
    target: Target,
    resources: Resources,
    stop: Stop,
    show: Show,
) -> int:
    work = fill_audit(run, settings, resources, stop, began=partial(announce, target), resume=options.resume)
    try:
        async with show(work.snapshot):
            summary = await work.run()
    except RunComplete as error:
        done = run if options.resume is None else RunReader(run.store, target.bucket, options.resume)
        return await _read_back(done, options, settings, str(error))
    await _print(summary, RunReader(run.store, target.bucket, summary.run), options, settings)
    remark_on(summary, target, options)
    return exit_code(summary, settings.fail_on)


async def _read_back(run: RunReader, options: argparse.Namespace, settings: Settings, words: str) -> int:
    """Print the summary of a run that stays as it is, and return its exit code. words: why it stays."""
    summary = complete_summary(run)
    await _print(summary, run, options, settings)
    say(f"{visible(run.uri)}: {words}")
    return exit_code(summary, settings.fail_on)


async def _print(summary: Summary, written: RunReader, options: argparse.Namespace, settings: Settings) -> None:
    print_text(await asyncio.to_thread("".join, FORMATS[options.format](summary, written, options_of(settings))))
