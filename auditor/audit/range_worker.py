"""A process that audits ranges of a run, one after the other, as the process that began it orders.

It reads orders from its stdin and writes reports to its stdout, each a line of JSON. It ends when its stdin ends, that
is, when there is no further range, or when the process that began it ends in any way.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from auditor.aio import loop as loops
from auditor.aio.stop import Grace, Stop
from auditor.audit.audit_run import RangeAudit
from auditor.audit.jobs import LONGEST, Order, RangeOutcome, Report, Start, whole_lines
from auditor.config.resources import Resources, open_resources
from auditor.config.settings import Settings
from auditor.errors import AuditorError, LimitTooLow, RunComplete, RunError, RunTaken
from auditor.model.json_codec import decode, encode_line
from auditor.s3.engines.pool import EnginePool
from auditor.s3.rate import RateLimit

GRACE: Final = Grace(flight=1.0, sending=1.3, saving=2.2, all=2.4)
"""Shorter than that of a command: the ranges are added up afterwards."""
LONGEST_END: Final = 3.0
"""Seconds after a stop at which the process ends at the latest. Its files are whole at any moment."""
PROGRESS_SECONDS: Final = 0.5
AGAIN: Final = 32
"""Number of further attempts at a range that a process of a killed run may still write: that process ends by itself."""
AGAIN_SECONDS: Final = 0.25
ORPHANED: Final = "the process that began this one has ended"


def _failed(error: Exception) -> Report:
    if isinstance(error, AuditorError):
        return Report(failure=(type(error).__name__, str(error)))
    text = f"this is a bug, please report it: {type(error).__name__}: {error}"
    return Report(failure=(RunError.__name__, text))


class RangeWorker:
    """Audits ranges. start: the first line. orders: the stream of the further ones. out: file descriptor of the
    reports.
    """

    def __init__(self, start: Start, orders: asyncio.StreamReader, out: int) -> None:
        self._start = start
        self._settings: Settings = pickle.loads(start.settings)  # noqa: S301 - from the process that began this one
        self._orders = orders
        self._out = out
        self._writing = threading.Lock()
        self._stop = Stop(grace=GRACE)
        self._ranges: asyncio.Queue[Order] = asyncio.Queue()
        self._ceiling = RateLimit(self._settings.max_rate)
        self._audit: RangeAudit | None = None
        self._loop = asyncio.get_running_loop()

    async def run(self) -> None:
        """Audit ranges until there is no further one."""
        self._loop.add_signal_handler(signal.SIGTERM, self._end, "stopped by SIGTERM")
        logging.basicConfig(handlers=[_Log(self._send)], level=self._start.level, format="%(message)s")
        watching = [asyncio.create_task(self._listen()), asyncio.create_task(self._count())]
        try:
            opening = open_resources(self._settings, [self._start.target])
            async with opening as opened, EnginePool(opened.engines) as engines:
                places = replace(opened, engines=engines.lend, ceiling=self._ceiling)
                while not self._stop and (order := await self._stop.race(self._ranges.get())) is not None:
                    self._send(await self._work(order, places))
        except Exception as error:
            self._send(_failed(error))
        finally:
            for task in watching:
                task.cancel()

    async def _work(self, order: Order, places: Resources, again: int = AGAIN) -> Report:
        """Audit a range, and return the report of its end. again: number of further attempts at a range that another
        process writes.
        """
        start, settings = self._start, order.limits.within(self._settings)
        audit = self._audit = RangeAudit(
            start.run_id, order.range or "", start.target, settings, places, self._stop, part_lines=start.part_lines
        )
        try:
            rest = await audit.run()
        except RunComplete:
            return Report(end=RangeOutcome(True, left=audit.left))
        except LimitTooLow as short:
            return Report(end=RangeOutcome(False, str(short), audit.left))
        except RunTaken as taken:
            if self._stop or not again:
                return _failed(taken)
        except Exception as error:
            return _failed(error)
        else:
            reason = rest.reason if rest else None
            return Report(audit.counts, RangeOutcome(rest is None, reason, audit.left, audit.unsent))
        finally:
            self._audit = None
        await asyncio.sleep(AGAIN_SECONDS)
        return await self._work(order, places, again - 1)

    async def _listen(self) -> None:
        """Take the orders."""
        async for line in whole_lines(self._orders):
            order = decode(Order, line)
            if order.stop is not None:
                self._end(order.stop)
                continue
            self._ceiling.change(order.rate)
            if order.range is not None:
                self._ranges.put_nowait(order)
        self._end(ORPHANED)

    async def _count(self) -> None:
        """Report the counts of the range in work, again and again."""
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            if self._audit is not None:
                self._send(Report(self._audit.counts))

    def _send(self, report: Report) -> None:
        """Write a report, unless nobody reads it any more. Any thread may call this: the thread of the run folder logs,
        too.
        """
        data = encode_line(report)
        with self._writing:
            try:
                while data:
                    data = data[os.write(self._out, data) :]
            except OSError:
                with suppress(RuntimeError):  # the loop has ended
                    self._loop.call_soon_threadsafe(self._end, ORPHANED)

    def _end(self, reason: str) -> None:
        """Set the stop, and end the process in any case some seconds later: a server may never answer."""
        if not self._stop:
            timer = threading.Timer(LONGEST_END, os._exit, (4,))
            timer.daemon = True
            timer.start()
            self._stop.set(reason)


class _Log(logging.Handler):
    """Sends the log to the process that began this one."""

    def __init__(self, send: Callable[[Report], None]) -> None:
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        self._send(Report(log=(record.levelno, record.name, self.format(record))))


async def _main(out: int) -> None:
    reader = asyncio.StreamReader(limit=LONGEST)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    line = await reader.readline()
    if line.endswith(b"\n"):
        await RangeWorker(decode(Start, line), reader, out).run()


def main() -> None:
    """Audit the ranges that stdin orders."""
    out = os.dup(1)
    os.dup2(2, 1)  # whatever else prints must not be taken for a report
    loops.run(_main(out))
