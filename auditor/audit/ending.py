"""End a run: sum it up, compare it with the last one, and write its reports, its seal and latest.json."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from auditor.audit.digests import write_routed
from auditor.audit.folder_thread import FolderThread
from auditor.audit.recorder import Recorder
from auditor.audit.report import highlights_of, page_of
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.model.bucket import BucketFacts
from auditor.model.object import Skipped
from auditor.model.rollup import RollUps
from auditor.model.summary import Changes, Resume, Summary
from auditor.model.target import Target
from auditor.reports.highlights import Highlights
from auditor.reports.rollup import RollUpBuilder, finished_rollups
from auditor.reports.summary import not_looked_at, summarize
from auditor.reports.trend import trend
from auditor.rules.plan import Plan
from auditor.runs.bucket_file import BucketFile
from auditor.runs.checkpoint import RangeEnd
from auditor.runs.folder import RunFolder
from auditor.runs.reading import RunReader
from auditor.s3.object_facts import NO_OBJECT_ACLS
from auditor.verdict.trust import Trust


class GatheredRun(Struct, frozen=True, kw_only=True):
    """A run whose objects are gathered and recorded, up to the end of the listing or to a stop.

    region: of the bucket. rollups: the counts in groups. earlier: the run with which this one
    compares. complete: True if the listing reached its end. resumed: True if earlier processes wrote lines of the run.
    is_latest: True if the run becomes the target's latest one when it is complete. lacks_acls: True if the server has
    no ACLs of objects. algorithms: the wanted digests that the summary counts; None without a ledger. more_unseen:
    phrases on further things that the run did not look at. started: the time of the monotonic clock at which this
    process began. stopped: the reason of a stop.
    """

    run_id: str
    target: Target
    settings: Settings
    places: Resources
    region: str | None
    facts: BucketFacts
    plan: Plan
    folder: RunFolder
    recorder: Recorder
    rollups: RollUpBuilder
    earlier: RunReader | None
    complete: bool
    resumed: bool
    is_latest: bool
    lacks_acls: bool
    algorithms: Sequence[str] | None
    more_unseen: Sequence[str]
    started: float
    stopped: str | None


class RunEnding:
    """Ends one run. Call one of hand_on(), leave_range() and finish(). thread: the thread that writes the run folder.

    rollups: the roll-ups of the run; None before finish(). shown: the objects that a report names, whole after
    finish(). Of a resumed run it has only the undecided objects.
    """

    def __init__(self, run: GatheredRun, thread: FolderThread) -> None:
        self._run = run
        self._folder = run.folder
        self._thread = thread
        self.shown = run.recorder.shown
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
        run, folder = self._run, self._folder
        if not run.complete:
            return await self.hand_on()
        await self._thread.save(folder, run.recorder.standings.end)
        result = self._summary(Changes())
        await self._thread.save(folder, lambda: folder.end_range(RangeEnd(lacks_acls=run.lacks_acls)))
        return result

    async def finish(self) -> Summary:
        """Write the reports of the run, its seal and its summary, and return the summary."""
        run, folder, save = self._run, self._folder, self._thread.save
        result = self._summary(await save(folder, partial(run.recorder.standings.changes, run.complete)))
        if run.recorder.tally.routed["objects"] and run.places.ledger is not None:
            await self._write_routed()
        self.rollups = groups = await save(folder, lambda: self._finished_rollups(result))
        if run.resumed:  # only the run folder has the lines of earlier processes
            await save(folder, folder.save)
            self.shown = await save(folder, self._read_highlights)
        described = BucketFile.from_json(folder.described)
        page = await save(folder, lambda: page_of(result, self.shown, described, groups))
        return await save(folder, lambda: folder.finish(result, page, groups.to_json(), update_latest=run.is_latest))

    def _summary(self, changes: Changes) -> Summary:
        run, tally = self._run, self._run.recorder.tally
        run.recorder.count_calls()
        undecided = tally.rules_undecided(run.plan.undecided)
        accepted, exceptions = run.recorder.summed_exceptions(undecided)
        acl = Skipped(NO_OBJECT_ACLS) if run.lacks_acls else run.plan.ask.acl
        return summarize(
            run=run.run_id,
            out=self._folder.uri,
            target=run.target,
            engine=run.settings.engine,
            complete=run.complete,
            tally=tally,
            rules_undecided=undecided,
            algorithms=run.algorithms,
            not_looked_at=[*not_looked_at(run.facts, run.target, acl, run.plan.ask.head), *run.more_unseen],
            seconds=time.monotonic() - run.started,
            resume=None if run.complete else Resume(run.run_id, self._folder.position, run.stopped),
            accepted_rules=accepted,
            exceptions=exceptions,
            trust_unused=Trust.of(run.settings.trusted).unused(tally.trusted),
            changes=changes,
            allow_empty=run.settings.allow_empty,
        )

    def _finished_rollups(self, result: Summary) -> RollUps:
        """Return the roll-ups, with the trend that the last complete run carries on. Blocks."""
        return finished_rollups(self._run.rollups, result, trend(result, self._run.earlier))

    def _read_highlights(self) -> Highlights:
        """Return the highlights that a report needs beside the roll-ups. Blocks."""
        run = self._run
        written = RunReader(run.places.store, run.target.bucket, run.run_id)
        return highlights_of(written, run.recorder.tally.coverage["undecided"])

    async def _write_routed(self) -> None:
        """Write the manifests and jobs for the objects that are left to S3 Batch Operations."""
        run, folder = self._run, self._folder
        await self._thread.save(folder, folder.save)
        account = run.facts.account if isinstance(run.facts.account, str) else None
        work = partial(write_routed, run.places, run.settings, run.target, run.run_id, run.region, account)
        await self._thread.save(folder, work)
