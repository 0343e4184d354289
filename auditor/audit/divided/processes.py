"""Audit the ranges of a divided run in several processes, under one limit of calls per second, calls and dollars."""

from __future__ import annotations

import asyncio
import logging
from asyncio.subprocess import Process
from collections import Counter, deque
from collections.abc import Iterable
from typing import Final

from msgspec import Struct, field

from auditor.aio.groups import task_group
from auditor.aio.stop import Stop
from auditor.audit.begin import Limits
from auditor.audit.divided.messages import Order, Report, Start, line_of, report_from, whole_lines
from auditor.audit.divided.share import rate_share
from auditor.audit.divided.starting import ProcessStarter
from auditor.errors import AuditorError, RunError
from auditor.progress import RunCounts
from auditor.text import visible

log = logging.getLogger(__name__)

LOST: Final = 3
"""Number of processes that a range may lose before the run fails."""


class _Worker(Struct):
    """A process. range: the one in work; None while it has none. counts: of that range."""

    process: Process
    range: str | None = None
    counts: RunCounts = field(default_factory=RunCounts)
    ready: bool = False


class RangeProcesses:
    """Audits ranges in `jobs` processes at once. Call run() once.

    A process that is killed, or told to end, is replaced, and its range continues from its checkpoint. Each process has
    an equal share of the calls per second; when one has no further range, the others share what it had, after it has
    ended. start: the first message to each process. ranges: IDs of the ranges to audit, in order. stop: ends the
    work. starter: starts the processes.
    """

    def __init__(
        self,
        start: Start,
        ranges: Iterable[str],
        jobs: int,
        limits: Limits,
        stop: Stop,
        starter: ProcessStarter,
    ) -> None:
        self._start = start
        self._starter = starter
        self._waiting = deque(ranges)
        self._limits = limits
        self._stop = stop
        self._workers: list[_Worker] = []
        self._most = max(1, min(jobs, len(self._waiting)))
        self._lost: Counter[str] = Counter()
        self._done = RunCounts()
        self._failure: AuditorError | None = None
        self.reason: str | None = None
        """Why a range was left before its end; None if none was."""
        self.unsent: list[str] = []
        """Sentences on objects that the queue did not take."""

    @property
    def counts(self) -> RunCounts:
        """The present counts of all ranges that were begun."""
        return sum((one.counts for one in self._workers), self._done)

    async def run(self) -> None:
        """Audit the ranges. Raises the first error of a process, after all processes have ended."""
        if not self._waiting:
            return
        try:
            async with task_group() as group:
                watching = group.create_task(self._stop_all())
                working = [group.create_task(self._work()) for _ in range(self._most)]
                await asyncio.wait(working)
                watching.cancel()
        finally:
            for one in self._workers:  # only if this process gives up
                one.process.kill()
        if self._failure is not None:
            raise self._failure

    @property
    def _ends(self) -> bool:
        return bool(self._stop) or self._failure is not None

    async def _work(self) -> None:
        """Keep one process at work until there is no further range."""
        while self._waiting and not self._ends and not self._limits.spent:
            await self._one_process()
        self._most -= 1
        self._share_anew()

    async def _one_process(self) -> None:
        process = await self._starter.next()
        worker = _Worker(process)
        self._workers.append(worker)
        try:
            self._send(worker, self._start.to_line())
            assert process.stdout is not None
            async for line in whole_lines(process.stdout):
                self._take(worker, report_from(line))
            await process.wait()
        finally:
            if process.returncode is not None:
                self._workers.remove(worker)
        self._lose(worker)

    def _take(self, worker: _Worker, report: Report) -> None:
        if report.log is not None:
            level, name, text = report.log
            logging.getLogger(name).log(level, "%s", text)
            return
        worker.counts = report.counts or worker.counts
        if report.failure is not None:
            self._fail(report.failure.error())
            worker.range = None
            self._send(worker, line_of(Order(done=True)))
        elif report.leaves:
            self._limits.returned(report.left)  # _lose() gives the range to another one
        elif report.ended or not worker.ready:
            worker.ready = True
            if report.ended:
                self._leave(worker, report)
            self._give(worker)

    def _leave(self, worker: _Worker, report: Report) -> None:
        self._limits.returned(report.left)
        if not report.complete:
            self.reason = self.reason or report.reason
        if report.unsent is not None:
            self.unsent.append(report.unsent)
        self._done, worker.counts, worker.range = self._done + worker.counts, RunCounts(), None

    def _give(self, worker: _Worker) -> None:
        """Give the process its next range, or let it end."""
        if not self._waiting or self._ends or self._limits.spent:
            self._send(worker, line_of(Order(done=True)))
            return
        worker.range = self._waiting.popleft()
        left = self._limits.taken(self._most)
        rate = rate_share(self._start.settings.max_rate, self._most)
        self._send(worker, line_of(Order(range=worker.range, rate=rate, left=left)))

    def _lose(self, worker: _Worker) -> None:
        """Give the range of a process that ended in the middle of it to the next process."""
        name, code = worker.range, worker.process.returncode
        if name is None and worker.ready:
            return
        if self._ends:
            self.reason = self.reason or self._stop.reason
            return
        lost, work = name or "", f"range {name}" if name else "its first range"
        self._lost[lost] += 1
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
        if self._lost[lost] >= LOST:
            self._fail(RunError(f"a process that was to audit {work} {how}, for the {LOST}rd time: see what ended it"))
        else:
            log.warning("a process that was to audit %s %s: another one takes it over", visible(work), how)
        if name is not None:
            self._waiting.appendleft(name)

    def _fail(self, error: AuditorError) -> None:
        if self._failure is None:
            self._failure = error
            self._order_all(Order(stop=str(error)))

    def _share_anew(self) -> None:
        """Tell the processes the calls per second that they have, now that one of them has ended."""
        if self._most > 0:
            rate = rate_share(self._start.settings.max_rate, self._most)
            self._order_all(Order(rate=rate))

    async def _stop_all(self) -> None:
        await self._stop.wait()
        self._order_all(Order(stop=self._stop.reason or "stopped"))

    def _order_all(self, order: Order) -> None:
        for one in self._workers:
            self._send(one, line_of(order))

    def _send(self, worker: _Worker, line: bytes) -> None:
        stdin = worker.process.stdin
        if stdin is not None and not stdin.is_closing():
            stdin.write(line)
