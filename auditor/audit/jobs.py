"""Audit the ranges of a run in several processes on this machine.

Orders go to a process, and its reports come back, as lines of JSON.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from auditor import errors
from auditor.aio.stop import Stop
from auditor.aio.tasks import task_group
from auditor.audit.limits import Limits, rate_share
from auditor.audit.run_context import RunContext
from auditor.config.settings import Settings
from auditor.errors import AuditorError, RunError
from auditor.model.json_codec import decode, encode_line
from auditor.model.target import Target
from auditor.progress import RunCounts

LONGEST: Final = 16 * 1024 * 1024
"""Bytes of the longest line that is read: a sentence with a key, or the settings of a large auditor.toml."""

RANGES: Final = 4
"""Number of ranges for each process: one that ends early takes over others, and the last ranges are short."""
MODULE: Final = "auditor.audit.range_worker"
_PROGRAM: Final = (
    "import importlib, os, sys; sys.path.append(sys.argv[1]); importlib.import_module(sys.argv[2]).main(); os._exit(0)"
)
"""Calls main() of a module, which may lie beside this package. `python -m` would search the working directory before
all others: any file there that has the name of a module would be run. At the end no thread that waits for a silent
server keeps the process."""


class Start(Struct, frozen=True):
    """The first line to a process. settings: those of the run, by pickle: the options of rules may have any type.
    part_lines: number of lines at which a part ends. level: the lowest level of the log.
    """

    run_id: str
    target: Target
    settings: bytes
    part_lines: int
    level: int


class Order(Struct, frozen=True, omit_defaults=True):
    """A further line to a process. range: ID of the range to audit next. rate: the most calls per second from now on;
    None: no limit. limits: the calls and dollars for this range. stop: why the process has to save its range and end.
    """

    range: str | None = None
    rate: float | None = None
    limits: Limits = Limits()
    stop: str | None = None


class RangeOutcome(Struct, frozen=True, omit_defaults=True):
    """The end of the work on a range. complete: False if the range was left before its end, for the `reason`. left: the
    calls and dollars that it did not use. unsent: a sentence on objects that the queue did not take.
    """

    complete: bool
    reason: str | None = None
    left: Limits = Limits()
    unsent: str | None = None


class Report(Struct, frozen=True, omit_defaults=True):
    """A line from a process. counts: of the range in work, at present. end: of the work on that range. failure: the
    error that ended the work: the name of its class, and one sentence. log: a line of the log: its level, the name of
    the logger, and its text.
    """

    counts: RunCounts | None = None
    end: RangeOutcome | None = None
    failure: tuple[str, str] | None = None
    log: tuple[int, str, str] | None = None


def error_of(kind: str, text: str) -> AuditorError:
    """Return the error of a report as an exception of its class."""
    found = getattr(errors, kind, RunError)
    return found(text) if issubclass(found, AuditorError) else RunError(text)


async def whole_lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the lines of a stream. A process that is killed may leave its last one without an end: that is none."""
    while (line := await stream.readline()).endswith(b"\n"):
        yield line


_ROOT: Final = str(Path(__file__).parents[2])
"""The folder that has the package."""


class RangeProcesses:
    """Audits ranges in several processes at once: start(), work() once, close().

    Each process has an equal share of the calls per second; when one has no further range, the others share what it
    had, after it has ended. If one is killed, the others save their ranges and end. settings: have the limits of all
    ranges together. jobs: number of processes. stop: ends the work. module: name of the module whose main() each one
    calls.
    """

    def __init__(self, settings: Settings, jobs: int, stop: Stop, module: str = MODULE) -> None:
        self._settings = settings
        self._jobs = jobs
        self._module = module
        self._stop = Stop(stop)
        self._processes: list[Process] = []
        self._counts: dict[str, RunCounts] = {}
        """By the ID of a range."""
        self._failure: AuditorError | None = None
        self._reason: str | None = None
        self._waiting: deque[str] = deque()
        self._active = 0
        """Number of processes that may send calls."""
        self.left = Limits.of(settings)
        """The calls and dollars that no range was given."""
        self.unsent: list[str] = []
        """Sentences on objects that the queue did not take."""

    @property
    def counts(self) -> RunCounts:
        """The present counts of all ranges that were begun."""
        return sum(self._counts.values(), RunCounts())

    @property
    def reason(self) -> str | None:
        """Why a range was left before its end; None if none was."""
        return self._stop.reason or self._reason

    async def start(self) -> None:
        """Start the processes, unless they are. They import, and then wait for their first range."""
        command = (sys.executable, "-P", "-c", _PROGRAM, _ROOT, self._module)
        for _ in range(self._jobs - len(self._processes)):
            process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, limit=LONGEST, start_new_session=True
            )
            self._processes.append(process)

    async def work(self, run: RunContext, ranges: Iterable[str], left: Limits, part_lines: int) -> None:
        """Audit the ranges with these IDs, in order. Raises the first error of a process, after all have ended. left:
        the calls and dollars for all ranges together. part_lines: number of lines at which a part ends.
        """
        level = logging.getLogger().getEffectiveLevel()
        start = Start(run.run_id, run.plan.target, pickle.dumps(self._settings), part_lines, level)
        self._waiting, self.left = deque(ranges), left
        if not self._waiting:
            return
        await self.start()
        self._active = min(self._jobs, len(self._waiting))
        for process in self._processes[self._active :]:
            _close(process)
        busy = self._processes[: self._active]
        for process in busy:
            _send(process, start)
        async with task_group() as group:
            work = [group.create_task(self._serve(process)) for process in busy]
            watching = group.create_task(self._stop_all())
            await asyncio.wait(work)
            watching.cancel()
        if self._failure is not None:
            raise self._failure

    async def close(self) -> None:
        """End the processes that still run: those that were started for nothing, or all if this process gives up."""
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.kill()
        for process in self._processes:
            await process.wait()

    async def _serve(self, process: Process) -> None:
        """Keep a process at work until it ends."""
        assert process.stdout is not None
        mine = self._give(process)
        async for line in whole_lines(process.stdout):
            report = decode(Report, line)
            if mine is not None and report.counts is not None:
                self._counts[mine] = report.counts
            if report.log is not None:
                level, name, text = report.log
                logging.getLogger(name).log(level, "%s", text)
            elif report.failure is not None:
                self._failure = self._failure or error_of(*report.failure)
                self._stop.set(str(self._failure))
            elif report.end is not None:
                self._take(report.end)
                mine = self._give(process)
        code = await process.wait()
        if mine is not None:
            how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
            self._stop.set(f"the process that audits range {mine} {how}")
        self._active -= 1
        if self._active:
            self._order_all(Order(rate=rate_share(self._settings.max_rate, self._active)))

    def _take(self, end: RangeOutcome) -> None:
        self.left += end.left
        if not end.complete:
            self._reason = self._reason or end.reason
        if end.unsent is not None:
            self.unsent.append(end.unsent)

    def _give(self, process: Process) -> str | None:
        """Give a process its next range, and return the range's ID; or let the process end, and return None."""
        if not self._waiting or self._stop or self.left.spent:
            _close(process)
            return None
        limits, rate = self.left.share(self._active), rate_share(self._settings.max_rate, self._active)
        self.left -= limits
        order = Order(range=self._waiting.popleft(), rate=rate, limits=limits)
        _send(process, order)
        return order.range

    async def _stop_all(self) -> None:
        await self._stop.wait()
        self._order_all(Order(stop=self._stop.reason))

    def _order_all(self, order: Order) -> None:
        for process in self._processes:
            _send(process, order)


def _send(process: Process, message: Start | Order) -> None:
    if process.stdin is not None and not process.stdin.is_closing():
        process.stdin.write(encode_line(message))


def _close(process: Process) -> None:
    """Tell a process that there is no further range."""
    if process.stdin is not None:
        process.stdin.close()
