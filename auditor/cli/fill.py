"""The flag --fill of `auditor audit`: fill a run, or continue to fill it, and print the summary of the new one."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from typing import Final

from auditor.aio.stop import Stop
from auditor.audit.audit_run import Audit
from auditor.audit.fill import Filling, complete_summary, has_holes
from auditor.cli import signals
from auditor.cli.audits import announce, remark_on
from auditor.cli.command_frame import CommandFrame, command
from auditor.cli.flags import flag_of
from auditor.cli.output import print_text, say
from auditor.cli.progress import Show, options_of
from auditor.cli.run_targets import each_target
from auditor.config.resources import Resources, check_output
from auditor.config.settings import Settings
from auditor.errors import RunComplete, UsageError
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.offline.folder_place import named_run, open_run
from auditor.offline.formats import FORMATS
from auditor.reports.summary import exit_code
from auditor.runs.paths import later_run_id, new_run_id
from auditor.runs.reading import RunReader
from auditor.runs.segment import PART_LINES
from auditor.text import visible

_OF_THE_RUN: Final = (
    *("versions", "start_after", "stop_at", "level", "only", "ignore", "semantics", "key_policies", "out"),
    *("ledger", "algorithms", "queue", "hash", "accept_cost", "streams"),
    *("batch_over", "batch_manifest", "batch_role", "keep", "every", "jobs"),
)
"""The options that are those of the filled run, or mean nothing for it."""


def fill_audit(
    run: RunReader,
    settings: Settings,
    places: Resources,
    stop: Stop,
    *,
    began: Callable[[str], None] | None = None,
    resume: str | None = None,
    part_lines: int = PART_LINES,
) -> Audit:
    """Return the audit that fills a run. Blocks a moment to read the run's files.

    The new run has the filled run's target, configuration and time of judging, and is written beside it. Objects of
    which all was read keep their lines, unless a fact of the bucket is known now that was not.

    run: a complete run, with its files. settings: connection and pace; the rest comes from the run. places: the store
    of the run folders. resume: ID of an earlier fill of the same run, to continue it. Raises UsageError if the run
    cannot be filled.
    """
    filling = Filling(run, settings)
    return Audit(
        filling.file.target,
        filling.settings,
        places,
        stop,
        filling=filling,
        began=began,
        run_id=resume or later_run_id(new_run_id(datetime.now(UTC), secrets.token_bytes(3)), run.run_id),
        resume=resume is not None,
        part_lines=part_lines,
    )


@command()
def run(frame: CommandFrame) -> int:
    """Fill the run, print the summary of the new run, and return the exit code of an audit."""
    options = frame.options
    if options.targets:
        raise UsageError("--fill RUN asks again about the objects of that run: leave out the target")
    for name in _OF_THE_RUN:
        if vars(options)[name] is not None:
            raise UsageError(f"{flag_of(name)} cannot be combined with --fill: leave it out, the run has it")
    return signals.run(_fill(frame))


async def _fill(frame: CommandFrame) -> int:
    options, settings = frame.options, frame.settings

    async def printed(summary: Summary, written: RunReader) -> int:
        how = options_of(settings, written.uri, options.verbose)
        print_text(await asyncio.to_thread("".join, FORMATS[options.format](summary, written, how)))
        return exit_code(summary, settings.fail_on)

    async def read_back(whole: RunReader, words: str) -> int:
        """Print the summary of a run that stays as it is, and return its exit code. words: why it stays."""
        code = await printed(complete_summary(whole), whole)
        say(f"{visible(whole.uri)}: {words}")
        return code

    async def one(target: Target, resources: Resources, stop: Stop, show: Show) -> int:
        resumed = options.resume and named_run(options.resume, filled.store, target.bucket)
        work = fill_audit(filled, settings, resources, stop, began=partial(announce, target), resume=resumed)
        try:
            async with show(work.snapshot):
                summary = await work.run()
        except RunComplete as error:
            done = filled if resumed is None else RunReader(filled.store, target.bucket, resumed)
            return await read_back(done, str(error))
        code = await printed(summary, RunReader(filled.store, target.bucket, summary.run))
        remark_on(summary, target, options)
        return code

    with open_run(frame.run_place(options.fill), **settings.connection) as filled:
        if not await asyncio.to_thread(has_holes, filled):
            return await read_back(filled, "nothing is undecided: no call was sent")
        target = (await asyncio.to_thread(lambda: filled.begun_with)).target
        check_output(filled.store, [target], "the place of the run")
        kept = f"run {filled.run_id} is as it was, and what was written is kept"
        return await each_target([target], nullcontext(Resources(store=filled.store)), one, verb="filled", kept=kept)
