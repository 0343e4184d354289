"""The command `auditor estimate`."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager

from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.audit.estimate import EstimateRun
from auditor.audit.resume import rules_of
from auditor.cli import signals
from auditor.cli.each_target import HOLE, each_target
from auditor.cli.options import settings_of, targets_of
from auditor.cli.output import print_result
from auditor.cli.progress import Show
from auditor.cli.terminal import columns
from auditor.config.resources import check_ledger, ledger_of
from auditor.config.settings import Settings
from auditor.ledger.base import Ledger
from auditor.model.target import Target
from auditor.reports.estimate import Estimate, estimate_text, summed
from auditor.runs.latest import last_run
from auditor.runs.reading import RunReader
from auditor.runs.stores import open_store


def run(options: argparse.Namespace) -> int:
    """Print an estimate for each target, and their sum. Return 0, or 4 if a listing did not reach its end."""
    settings = settings_of(options)
    targets = targets_of(options, settings)
    rules_of(settings, ledger=settings.ledger is not None)
    check_ledger(settings)
    work = _Estimates(settings, options.format, targets)
    code = signals.run(each_target(targets, _ledger(settings), work.one, verb="estimated", kept="nothing is kept"))
    work.close()
    return code


@asynccontextmanager
async def _ledger(settings: Settings) -> AsyncIterator[Ledger | None]:
    if settings.ledger is None:
        yield None
    else:
        async with ledger_of(settings) as ledger:
            yield ledger


class _Estimates:
    """The estimates of a command, one target after the other."""

    def __init__(self, settings: Settings, form: str, targets: Sequence[Target]) -> None:
        self._settings = settings
        self._form = form
        self._number = len(targets)
        self._done: list[Estimate] = []

    async def one(self, target: Target, ledger: Ledger | None, stop: Stop, show: Show) -> int:
        with ExitStack() as stack:
            last = await asyncio.to_thread(self._last, target, stack)
            work = EstimateRun(target, self._settings, ledger, stop, last=last)
            async with show(work.snapshot):
                estimate = await work.run()
        self._done.append(estimate)
        self._print(estimate)
        return 0 if estimate.complete else HOLE

    def _last(self, target: Target, stack: ExitStack) -> RunReader | None:
        """Return the last complete run whose facts `keep` takes; None if there is none. Blocks."""
        settings = self._settings
        if settings.keep is None or not target.whole:
            return None
        return last_run(stack.enter_context(open_store(settings.out, **settings.connection)), target)

    def close(self) -> None:
        """Print the sum of several targets."""
        if self._number > 1 and self._done:
            total = summed(self._done)
            self._print(replace(total, complete=total.complete and len(self._done) == self._number))

    def _print(self, estimate: Estimate) -> None:
        print_result(self._form, estimate, lambda: estimate_text(estimate, columns()))
