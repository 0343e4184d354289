"""Audit one target in several processes: begin a divided run, audit its ranges, and add them up."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from typing import Final

from auditor.aio.stop import Stop
from auditor.audit.begin import Limits
from auditor.audit.divided.begin import LEAST_KEYS, BegunRun, begin
from auditor.audit.divided.combine import combine
from auditor.audit.divided.messages import Start
from auditor.audit.divided.processes import RangeProcesses
from auditor.audit.divided.starting import MODULE, ProcessStarter
from auditor.audit.divided.state import range_progress
from auditor.audit.folder_thread import silent
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.progress import RunCounts, Snapshot
from auditor.runs.folder import PART_LINES
from auditor.runs.paths import new_run_id, run_path
from auditor.runs.stores.base import LockingStore
from auditor.text import counted, visible

RANGES: Final = 4
"""Number of ranges for each process: one that ends early takes over others, and the last ranges are short."""
PLANNING_PAGE: Final = 200
"""Number of keys on a page of the listing that plans the ranges, while all processes wait. The ranges are about as
equal as by whole pages, and a fifth of the keys is read."""
LOCK: Final = "jobs"
"""The name of the lock that the process of a divided run holds in a directory."""


class JobsAudit:
    """Audits one target in several processes on this machine. Call run() once.

    The parameters and methods are those of Audit. jobs: number of processes. least: a range has at least about so many
    keys. module: name of the module that each process runs.
    """

    def __init__(
        self,
        target: Target,
        settings: Settings,
        places: Resources,
        stop: Stop,
        *,
        jobs: int,
        began: Callable[[str], None] | None = None,
        run_id: str | None = None,
        resume: bool = True,
        part_lines: int = PART_LINES,
        least: int = LEAST_KEYS,
        module: str = MODULE,
    ) -> None:
        self._least = least
        self._module = module
        self._target = target
        self._settings = settings
        self._places = places
        self._stop = stop
        self._jobs = jobs
        self._began = began
        self._resumed = resume and run_id is not None
        self.run_id = run_id or new_run_id(datetime.now(UTC), secrets.token_bytes(3))
        self._part_lines = part_lines
        self._started = time.monotonic()
        self._processes: RangeProcesses | None = None
        self._expected: int | None = None
        self._keys: float | None = None
        """The number of keys that planning has estimated so far."""
        self._before = 0
        self.left = Limits(settings.max_calls, settings.max_cost)
        self.rollups: RollUps
        self.unsent: str | None = None

    async def run(self) -> Summary:
        """Audit the target, write the summary to the run folder, and return it. After an error, written parts stay.

        Raises the errors of begin() and combine(), the first error of a process, and RunStopped if the ranges cannot be
        added up in time after a stop.
        """
        starter = ProcessStarter(self._module)
        try:
            if not self._resumed:  # a run that cannot be resumed begins nothing
                await starter.start_ahead(self._jobs)
            begun = await begin(
                self._target,
                self._settings,
                self._places,
                self._stop,
                ranges=RANGES * self._jobs,
                least=self._least,
                run_id=self.run_id,
                resume=self._resumed,
                progress=self._note_keys,
                page=PLANNING_PAGE,
            )
            return await self._audit(begun, starter)
        finally:
            await starter.close()

    async def _audit(self, begun: BegunRun, starter: ProcessStarter) -> Summary:
        run_id, target, store = self.run_id, self._target, self._places.store
        async with AsyncExitStack() as stack:
            if isinstance(store, LockingStore):
                stack.callback(await asyncio.to_thread(store.hold, run_path(target.bucket, run_id), LOCK))
            if self._began is not None:
                self._began(run_id)
            progress = await asyncio.to_thread(lambda: list(range_progress(store, begun.plan)))
            self._expected = begun.plan.keys or None if begun.plan.exact else None
            self._before = sum(one.listed for one in progress if one.complete)
            self.left = begun.left
            level = logging.getLogger().getEffectiveLevel()
            start = Start(run_id, target, self._settings, self._part_lines, level)
            waiting = [one.id for one in progress if not one.complete]
            work = self._processes = RangeProcesses(start, waiting, self._jobs, self.left, self._stop, starter)
            await work.run()
            self.unsent = "; ".join(work.unsent) or None
            return await self._combined(run_id, self._stop.reason or work.reason)

    async def _combined(self, run_id: str, reason: str | None) -> Summary:
        seconds = time.monotonic() - self._started
        add = partial(combine, self._target, run_id, self._settings, self._places, seconds=seconds, reason=reason)
        async with self._stop.saving():
            done = await asyncio.to_thread(add)
            self.rollups = done.rollups
            return done.summary
        raise silent(self._places.store.uri(), self._stop)

    def snapshot(self) -> Snapshot:
        """Return the present counts, for a progress line."""
        work, heard = self._processes, self._keys is not None
        counts = RunCounts() if work is None else work.counts
        dividing = f"dividing about {counted(round(self._keys or 0), 'key')}"
        return Snapshot(
            what=visible(self._target.uri),
            objects=self._before + counts.listed,
            seconds=time.monotonic() - self._started,
            detail=dividing if work is None else counts.words,
            expected=self._expected,
            heard=heard,
        )

    def _note_keys(self, keys: float) -> None:
        self._keys = keys
