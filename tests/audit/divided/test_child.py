"""A process that audits ranges, whose beginner has died: no thread of it may fail on that."""

from __future__ import annotations

import asyncio
import logging
import os

from auditor.aio.stop import Stop
from auditor.audit.divided.child import GRACE, Child
from auditor.audit.divided.messages import Report, Start
from auditor.config.settings import Settings
from auditor.model.target import Target


async def test_report_of_another_thread_that_nobody_reads_stops_the_process() -> None:
    start = Start("20260102T030405Z-0a1b2c", Target("audited"), Settings(), 10, logging.INFO)
    reader, out = os.pipe()
    os.close(reader)
    stop, ends = Stop(grace=GRACE), list[None]()
    child = Child(start, asyncio.StreamReader(), out, stop, lambda: ends.append(None))
    try:
        async with stop.flight():
            await asyncio.to_thread(child.send, Report())
            await stop.wait()
    finally:
        os.close(out)
    assert stop.reason == "the process that began this one has ended"
    assert ends == [None]
