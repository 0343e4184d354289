"""Audit the targets of a command side by side, and print their results."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.audit.begin import Limits
from auditor.audit.estate.page import entries_beside
from auditor.audit.index import NAME as INDEX
from auditor.audit.index import entry_of, others_in, write_index
from auditor.audit.resume import check_selection, judging
from auditor.cli.audit_way import AuditWay
from auditor.cli.closing_table import TargetResult, closing_table
from auditor.cli.each_target import each_target
from auditor.cli.jobs import audit_of
from auditor.cli.output import print_json, print_text, remark, say
from auditor.cli.progress import Show
from auditor.cli.terminal import columns, options_of
from auditor.config.resources import Resources, open_resources, open_stores
from auditor.config.settings import Settings
from auditor.errors import AuditorError, RunComplete, RunStopped, UsageError
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.reports import table
from auditor.reports.formats import FORMATS
from auditor.reports.formats.markdown import failed_comment
from auditor.reports.summary import exit_code
from auditor.reports.summed import IndexEntry
from auditor.runs.reading import RunReader
from auditor.runs.stores.base import Store
from auditor.s3.rate import RateLimit
from auditor.text import visible

AT_ONCE: Final = 8
"""Largest number of targets that are audited side by side. With --max-calls or --max-cost it is one after the other,
because calls in flight of one target could use up those of another.
"""


class Audits:
    """The audits of a command. Several targets share the limits of calls per second and of calls (--max-calls).

    way: answers the questions on which the audits of an estate differ. several: True to treat the targets as several,
    whatever their number. index: path in the store of the index page that is written after them.
    """

    def __init__(
        self,
        settings: Settings,
        options: argparse.Namespace,
        targets: Sequence[Target],
        way: AuditWay,
        *,
        several: bool = False,
        index: str = INDEX,
    ) -> None:
        self._settings = settings
        self._options = options
        self._targets = targets
        self._way = way
        self._several = several or len(targets) > 1
        self._left = Limits(settings.max_calls, settings.max_cost)
        self._ceiling = RateLimit(settings.max_rate) if self._several and settings.max_rate else None
        self._place = index
        self._index: str | None = None
        self.results: dict[Target, TargetResult] = {}
        """The results of the targets that have ended."""
        self.entries: dict[Target, IndexEntry] = {}
        """Their entries for the index page."""

    async def all(self) -> int:
        """Audit all targets, and return the exit code."""
        limited = self._settings.max_calls is not None or self._settings.max_cost is not None
        return await each_target(
            self._targets,
            open_resources(self._settings, self._targets),
            self.one,
            verb="audited",
            kept="what was written is in place",
            at_once=1 if limited or self._options.jobs is not None else AT_ONCE,
            failed=self.failed,
        )

    async def one(self, target: Target, resources: Resources, stop: Stop, show: Show) -> int:
        """Audit one target, print the result, and return the exit code."""
        self._way.begin(target, stop)
        resources = replace(resources, index=self._place)
        if not self._several:
            return await self._audit(target, resources, stop, show)
        if self._left.calls == 0:
            raise RunStopped(f"{visible(target.uri)} was not audited: --max-calls is used up")
        if self._left.dollars == 0:
            raise RunStopped(f"{visible(target.uri)} was not audited: --max-cost is used up")
        async with open_stores(self._settings, [target]) as own:  # a run's thread writes to a store of its own
            mine = replace(resources, store=own.store, manifests=own.manifests, ceiling=self._ceiling)
            return await self._audit(target, mine, stop, show)

    async def _audit(self, target: Target, resources: Resources, stop: Stop, show: Show) -> int:
        options = self._options
        settings = replace(self._way.settings_of(target), max_calls=self._left.calls, max_cost=self._left.dollars)
        run_id, resume = await self._way.run_of(target, resources)
        began = partial(self._way.announce, target)
        jobs = options.jobs
        audit = await audit_of(target, settings, resources, stop, jobs=jobs, began=began, run_id=run_id, resume=resume)
        again = False
        try:
            async with show(audit.snapshot):
                summary = await audit.run()
        except RunComplete:
            _, selection = judging(settings, resources)
            summary, rollups = await asyncio.to_thread(_read_back, target, resources, audit.run_id, selection)
            remark(f"{visible(target.uri)}: run {audit.run_id} is complete, this is its summary")
            again = True  # its end is told already
        else:
            rollups = audit.rollups
        finally:
            self._left = audit.left
        code = exit_code(summary, settings.fail_on)
        self.results[target] = TargetResult(target, summary, code)
        self.entries[target] = entry_of(target, summary, rollups)
        if options.format != "table":
            written = RunReader(resources.store, target.bucket, summary.run)
            print_text(await asyncio.to_thread("".join, FORMATS[options.format](summary, written)))
        elif not self._several:
            how = options_of(settings)
            print_text(table.render(summary, how.fail_on, how.columns, rollups=rollups, colour=how.colour))
        self._way.remark_on(summary, target)
        if not again:
            await self._way.tell(audit, summary)
        return code

    def failed(self, target: Target, sentence: str, code: int) -> None:
        """Note that a target has no summary, and print that in the format of the summaries."""
        code = self._way.failed(sentence, code)
        self.entries[target] = IndexEntry(target=target, failed=sentence)
        self.results[target] = TargetResult(target, None, code)
        if self._options.format == "json":
            print_json({"target": target, "complete": False, "failed": sentence, "exit_code": code})
        elif self._options.format == "markdown":
            print_text(failed_comment(target, sentence))

    async def indexed(self) -> int:
        """Audit all targets, write the index page of the place, and return the exit code."""
        code = await self.all()
        entries = [self.entries[target] for target in self._targets if target in self.entries]
        if not any(one.summary is not None for one in entries) and not self._several:
            return code
        try:
            async with open_stores(self._settings, self._targets, hashing=False) as stores:
                self._index = await asyncio.to_thread(_write_index, stores.store, entries)
        except AuditorError as error:  # the audits have ended, and their results are in place
            say(f"the index page is not written: {error}")
        return code

    def close(self) -> None:
        """Print the closing table of several targets."""
        if self._several and self._options.format == "table":
            reports = "" if self._index is None else f"reports: {visible(self._index)}\n"
            print_text(f"{self.table()}{reports}")

    def table(self) -> str:
        """Return the closing table of the targets that have ended."""
        results = [self.results[target] for target in self._targets if target in self.results]
        return closing_table(results, columns())


def _write_index(store: Store, own: Sequence[IndexEntry]) -> str:
    entries, estates = entries_beside(store, [*own, *others_in(store, own)])
    return write_index(store, entries, estates)


def _read_back(
    target: Target, resources: Resources, run_id: str, selection: Mapping[str, Any]
) -> tuple[Summary, RollUps]:
    """Read the summary and the roll-ups of a complete run from its run folder.

    Raises UsageError if the run's target is another one than `target`, and RunChanged if it was begun with another
    selection: what the run did not look at would be called clean.
    """
    run = RunReader(resources.store, target.bucket, run_id)
    assert run.summary is not None
    done = run.summary.target
    if (done.prefix, done.versions) != (target.prefix, target.versions):
        raise UsageError(f"run {run_id} is of another target or prefix: it is complete, start a new run")
    if (state := run.checkpoint) is not None:
        check_selection(state, selection)
    return run.summary, run.rollups()
