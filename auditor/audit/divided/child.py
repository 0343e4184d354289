"""A process that audits ranges of a divided run, one after the other, as the process that began it says.

It reads orders from its stdin and writes reports to its stdout. It ends by itself when its stdin ends, that is, when
the process that began it ends in any way.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from auditor.aio import loop as loops
from auditor.aio.stop import Grace, Stop
from auditor.audit.begin import Limits
from auditor.audit.divided.messages import (
    LONGEST,
    Failure,
    Order,
    Report,
    Start,
    line_of,
    order_from,
    whole_lines,
)
from auditor.audit.divided.range import range_audit
from auditor.audit.run import Audit
from auditor.config.resources import Resources, open_resources
from auditor.errors import LimitTooLow, RunComplete, RunTaken
from auditor.model.summary import Summary
from auditor.progress import RunCounts
from auditor.s3.engines.pool import EnginePool
from auditor.s3.rate import RateLimit

GRACE: Final = Grace(flight=1.0, sending=1.3, saving=2.2, all=2.4)
"""Shorter than that of a command: the ranges are added up afterwards."""
LONGEST_END: Final = 3.0
"""Seconds after a stop at which the process ends at the latest. Its files are whole at any moment."""
PROGRESS_SECONDS: Final = 0.5
TAKEN_SECONDS: Final = 8.0
"""Seconds in which a range may still be written by a process of a run that was killed: that process ends by itself."""
AGAIN_SECONDS: Final = 0.25


class _Log(logging.Handler):
    """Sends the log to the process that began this one."""

    def __init__(self, send: Callable[[Report], None]) -> None:
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        self._send(Report(log=(record.levelno, record.name, self.format(record))))


class Child:
    """Audits ranges. start: the first message. orders: the stream of the further ones. out: file descriptor of the
    reports. stop: ends the work. end_late: ends the process some seconds later, whatever it does then.
    """

    def __init__(
        self,
        start: Start,
        orders: asyncio.StreamReader,
        out: int,
        stop: Stop,
        end_late: Callable[[], None],
    ) -> None:
        self._start = start
        self._orders = orders
        self._out = out
        self._writing = threading.Lock()
        self._stop = stop
        self._end_late = end_late
        self._ranges: asyncio.Queue[Order | None] = asyncio.Queue()
        self._ceiling = RateLimit(start.settings.max_rate)
        self._audit: Audit | None = None
        self._leaves = False
        self._loop = asyncio.get_running_loop()

    async def run(self) -> None:
        """Audit ranges until there is no further one."""
        self._loop.add_signal_handler(signal.SIGTERM, self._leave)
        handler = _Log(self.send)
        logging.basicConfig(handlers=[handler], level=self._start.level, format="%(message)s")
        watching = [asyncio.create_task(self._listen()), asyncio.create_task(self._tell())]
        try:
            settings, target = self._start.settings, self._start.target
            async with open_resources(settings, [target]) as opened, EnginePool(opened.engines) as engines:
                places = replace(opened, engines=engines.lend, ceiling=self._ceiling)
                self.send(Report())
                while (order := await self._ranges.get()) is not None and not self._leaves:
                    await self._work(order, places)
        except Exception as error:
            self.send(Report(failure=Failure.of(error)))
        finally:
            for task in watching:
                task.cancel()

    def send(self, report: Report) -> None:
        """Write a report, unless nobody reads it any more. Any thread may call this."""
        data = line_of(report)
        with self._writing:
            try:
                while data:
                    data = data[os.write(self._out, data) :]
            except OSError:
                self._stop_now("the process that began this one has ended")

    async def _work(self, order: Order, places: Resources) -> None:
        try:
            summary = await self._audited(order, places)
        except RunComplete:
            self.send(Report(ended=True, complete=True, left=order.left))
        except LimitTooLow as short:
            self.send(Report(ended=True, reason=str(short), left=self._left()))
        except Exception as error:
            if not self._leaves:  # else the process that continues the range has the error again
                self.send(Report(failure=Failure.of(error)))
        else:
            self.send(
                Report(
                    counts=self._counts(),
                    ended=True,
                    complete=summary.complete,
                    leaves=self._leaves and not summary.complete,
                    reason=summary.resume.reason if summary.resume else None,
                    left=self._left(),
                    unsent=self._audit.unsent if self._audit else None,
                )
            )
        finally:
            self._audit = None

    async def _audited(self, order: Order, places: Resources) -> Summary:
        start, waited = self._start, 0.0
        settings = replace(start.settings, max_calls=order.left.calls, max_cost=order.left.dollars)
        while True:
            assert order.range is not None
            self._audit = range_audit(
                start.run_id, order.range, start.target, settings, places, self._stop, part_lines=start.part_lines
            )
            try:
                return await self._audit.run()
            except RunTaken:
                if self._stop or waited >= TAKEN_SECONDS:
                    raise
            await asyncio.sleep(AGAIN_SECONDS)
            waited += AGAIN_SECONDS

    def _left(self) -> Limits:
        return self._audit.left if self._audit else Limits()

    def _counts(self) -> RunCounts:
        return RunCounts() if self._audit is None else self._audit.counts

    async def _listen(self) -> None:
        """Take the orders."""
        async for line in whole_lines(self._orders):
            order = order_from(line)
            if order.stop is not None:
                self._stop_now(order.stop)
            elif order.done:
                self._ranges.put_nowait(None)
            else:
                self._ceiling.change(order.rate)
                if order.range is not None:
                    self._ranges.put_nowait(order)
        self._stop_now("the process that began this one has ended")
        self._ranges.put_nowait(None)

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            if self._audit is not None:
                self.send(Report(counts=self._counts()))

    def _leave(self) -> None:
        """Save the range and end: this process alone was told to, so that another one continues the range."""
        self._leaves = True
        self._stop_now("stopped by SIGTERM")
        self._ranges.put_nowait(None)

    def _stop_now(self, reason: str) -> None:
        """Set the stop. Any thread may call this: the log of the thread of the run folder comes here too."""
        if not self._stop:
            self._end_late()
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._stop.set, reason)


def _end_late() -> None:
    """End the process LONGEST_END seconds from now: a server may never answer."""
    timer = threading.Timer(LONGEST_END, os._exit, (4,))
    timer.daemon = True
    timer.start()


async def _main(out: int) -> None:
    reader = asyncio.StreamReader(limit=LONGEST)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    line = await reader.readline()
    if line:
        await Child(Start.from_line(line), reader, out, Stop(grace=GRACE), _end_late).run()


def main() -> None:
    """Audit the ranges that stdin orders."""
    out = os.dup(1)
    os.dup2(2, 1)  # whatever else prints must not be taken for a report
    loops.run(_main(out))


if __name__ == "__main__":
    main()
    os._exit(0)  # no thread that waits for a silent server keeps the process
