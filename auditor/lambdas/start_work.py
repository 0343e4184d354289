"""The work of one invocation on a start: its targets, and how each of them ends or is left."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from auditor.config.settings import Settings
from auditor.estate.start import OpenedEstate
from auditor.lambdas.audit_target import TargetAudit, TargetEnd
from auditor.lambdas.invocation_frame import FunctionCall
from auditor.lambdas.start import FunctionStart, StartTarget, TargetPhase, take_start
from auditor.lambdas.start_end import EndedRun, StartEnd, open_account, settings_of_owner, with_index
from auditor.model.estate import EstateReport
from auditor.model.summary import Summary
from auditor.runs.stores.base import Store

AT_ONCE: Final = 4
"""Largest number of buckets of an account on which one invocation works side by side."""


class StartWork:
    """One invocation's work on a start. machine: True for a step of the state machine.

    Call _take() and _open() before the other methods.
    """

    def __init__(self, call: FunctionCall, *, machine: bool) -> None:
        self._call = call
        self._machine = machine
        self._account: OpenedEstate | None = None
        self._start: FunctionStart
        self._end: StartEnd
        self._ended: list[EndedRun] = []

    @property
    def _store(self) -> Store:
        return self._call.store

    @property
    def _at_once(self) -> int:
        return 1 if self._account is None else AT_ONCE

    async def _take(self) -> FunctionStart:
        """Take the start for this invocation. Raises StartBusyError."""
        given = self._call.invocation
        fixed = given.scheduled or given.start is not None
        seconds = self._call.context.remaining()
        take = partial(take_start, self._store, given.start_id, seconds, fixed=fixed, machine=self._machine)
        return await asyncio.to_thread(take)

    async def _open(self, start: FunctionStart) -> None:
        """Find the targets of the start: those of the event, or the buckets of the account as they are now."""
        given = self._call.invocation
        self._start = start
        if given.all_buckets:
            self._account = await open_account(self._call, start)
        elif not start.targets:
            start.targets = [StartTarget.of(one, run=given.run) for one in given.targets]
            if not all(one.whole for one in given.targets):
                await self._save()  # an event that continues a range of keys does not name its keys
        self._call = with_index(self._call, start, self._account)
        self._end = StartEnd(self._call, start)

    def _settings_of(self, owner: str | None) -> Settings:
        """Return the settings for a bucket. owner: number of its account, for every bucket of an account."""
        settings = self._call.settings
        return settings_of_owner(settings, owner) if self._call.invocation.all_buckets else settings

    def _audit_of(self, place: int) -> TargetAudit:
        one = self._start.targets[place]
        wanted = self._start.wanted(place)
        return TargetAudit(self._call, one, self._start.id, wanted, self._settings_of(one.owner))

    async def _note(self, place: int, done: TargetEnd) -> None:
        """Note how far a target is, and tell the end of its run."""
        start, one = self._start, self._start.targets[place]
        if done.left:
            begun = self._machine and not done.sentence and not done.again
            phase = TargetPhase.BEGUN if begun else TargetPhase.WAITING
            start.note(place, phase, run=done.run, sentence=done.sentence)
        elif done.summary is not None:
            run = EndedRun(target=one.target, summary=done.summary, rollups=done.rollups, unsent=done.unsent)
            self._ended.append(run)
            start.note(place, TargetPhase.ENDED, run=done.run)
            await self._end.tell_run(run)

    async def _save(self, *, free: bool = False, machine: bool | None = None) -> None:
        await asyncio.to_thread(partial(self._start.save, free=free, machine=machine))

    async def _save_end(self, runs: Sequence[Summary], report: EstateReport | None) -> None:
        """Write that the start has ended. runs: the summaries of its runs."""
        failed = bool(self._start.in_phase(TargetPhase.FAILED))
        complete = report.complete if report is not None else not failed and all(one.complete for one in runs)
        await asyncio.to_thread(partial(self._start.save, free=True, ended=True, complete=complete))
