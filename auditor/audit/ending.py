"""End a run: sum it up, compare it with the last one, and write its reports, its seal and latest.json."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from auditor.audit.context import RunContext
from auditor.audit.digests import write_routed
from auditor.audit.recorder import Recorder
from auditor.audit.report import page_of
from auditor.audit.run_summary import RunEnd, summarize
from auditor.model.object import Skipped
from auditor.model.rollup import RollUps
from auditor.model.summary import Changes, Resume, Summary
from auditor.reports.rollup import finished_rollups
from auditor.reports.summary import not_looked_at
from auditor.reports.trend import trend
from auditor.runs.bucket_file import BucketFile
from auditor.runs.checkpoint import RangeEnd
from auditor.s3.object_facts import NO_OBJECT_ACLS


class RunEnding:
    """Ends one run, whose objects are gathered and recorded up to the end of the listing or to a stop. Call one of
    hand_on(), leave_range() and finish().

    complete: True if the listing reached its end. resumed: True if earlier processes wrote lines of the run.
    lacks_acls: True if the server has no ACLs of objects. algorithms: the wanted digests that the summary counts; None
    without a ledger. more_unseen: phrases on further things that the run did not look at. started: the time of the
    monotonic clock at which this process began.

    rollups: the roll-ups of the run; None before finish().
    """

    def __init__(
        self,
        run: RunContext,
        recorder: Recorder,
        *,
        complete: bool,
        resumed: bool,
        lacks_acls: bool,
        algorithms: Sequence[str] | None,
        more_unseen: Sequence[str],
        started: float,
    ) -> None:
        self._run = run
        self._recorder = recorder
        self._lines = recorder.lines
        self._folder = recorder.lines.folder
        self._thread = run.thread
        self._complete = complete
        self._resumed = resumed
        self._lacks_acls = lacks_acls
        self._algorithms = algorithms
        self._stopped = run.stop.reason
        self._more_unseen = more_unseen
        self._started = started
        self.rollups: RollUps | None = None

    async def hand_on(self) -> Summary:
        """Save the run for the process that continues it, and return the summary so far, which is not written."""
        result = self._summary(Changes())
        await self._thread.save(self._folder, self._folder.hand_on)
        return result

    async def leave_range(self) -> Summary:
        """Save a range of a divided run, and return its summary, which is not written. A complete range counts what
        only the last run has up to the range's end.
        """
        folder = self._folder
        if not self._complete:
            return await self.hand_on()
        await self._thread.save(folder, self._recorder.comparison.end)
        result = self._summary(Changes())
        await self._thread.save(folder, lambda: folder.end_range(RangeEnd(lacks_acls=self._lacks_acls)))
        return result

    async def finish(self) -> Summary:
        """Write the reports of the run, its seal and its summary, and return the summary."""
        run, folder, save = self._run, self._folder, self._thread.save
        result = self._summary(await save(folder, partial(self._recorder.comparison.changes, self._complete)))
        if self._lines.tally.routed["objects"] and run.has_ledger:
            await self._write_routed()
        self.rollups = groups = await save(folder, lambda: self._finished_rollups(result))
        if self._resumed:  # only the run folder has the lines of earlier processes
            await save(folder, folder.save)
        described = BucketFile.from_json(folder.described)
        page = await save(folder, lambda: page_of(result, described, groups, run.places.index_link))
        latest = run.before.is_latest
        return await save(folder, lambda: folder.finish(result, page, groups.to_json(), update_latest=latest))

    def _summary(self, changes: Changes) -> Summary:
        run, ask = self._run, self._run.plan.ask
        self._recorder.count_calls()
        acl = Skipped(NO_OBJECT_ACLS) if self._lacks_acls else ask.acl
        end = RunEnd(
            run=run.run_id,
            out=self._folder.uri,
            target=run.target,
            settings=run.settings,
            now=run.now,
            tally=self._lines.tally,
            rules_undecided=run.plan.undecided,
            algorithms=self._algorithms,
            not_looked_at=[*not_looked_at(run.facts, run.target, acl, ask.head), *self._more_unseen],
            seconds=time.monotonic() - self._started,
            resume=None if self._complete else Resume(run.run_id, self._folder.position, self._stopped),
            changes=changes,
        )
        return summarize(end)

    def _finished_rollups(self, result: Summary) -> RollUps:
        """Return the roll-ups, with the trend that the last complete run carries on. Blocks."""
        return finished_rollups(self._lines.rollups, result, trend(result, self._run.earlier))

    async def _write_routed(self) -> None:
        """Write the manifests and jobs for the objects that are left to S3 Batch Operations."""
        run, folder = self._run, self._folder
        await self._thread.save(folder, folder.save)
        account, region = run.facts.account if isinstance(run.facts.account, str) else None, run.connection.region
        work = partial(write_routed, run.places, run.settings, run.target, run.run_id, region, account)
        await self._thread.save(folder, work)
