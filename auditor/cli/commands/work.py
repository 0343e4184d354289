"""The command `auditor work`: hash the objects that the messages of a queue name."""

from __future__ import annotations

import argparse
import asyncio
import signal
import time

from auditor.cli import signals
from auditor.cli.options import settings_of
from auditor.cli.output import first_word, print_result, say
from auditor.cli.process_end import end_soon
from auditor.cli.progress import shown
from auditor.config.settings import Settings
from auditor.config.values import seconds
from auditor.hashing.limits import CONCURRENCY
from auditor.hashing.worker.counts import Counts
from auditor.hashing.worker.loop import Pace, Worker, open_processor
from auditor.hashing.worker.options import WorkerOptions
from auditor.progress import Snapshot
from auditor.text import counted, healed_rows


def run(options: argparse.Namespace) -> int:
    settings = settings_of(options, "queue", "ledger")
    idle = seconds(options.idle, "--idle")
    first_word(f"asking the queue {settings.queue}", longer=Pace().poll)
    counts, stopped = signals.run(_work(settings, idle))
    print_result(
        options.format,
        counts,
        lambda: (
            f"{counted(counts.messages, 'message')}: {counted(counts.hashed, 'object')} hashed,"
            f" {counts.known:,} known before, {counts.superseded:,} superseded, {counts.unhashable:,} cannot be hashed,"
            f" {counts.failed:,} failed ({counts.dead_lettered:,} on the dead-letter queue),"
            f" {counts.resent:,} sent again, {counts.continued:,} left to the next worker,"
            f" {', '.join([f'{counts.left_for_cost:,} left for their cost', *healed_rows(counts.healed)])}\n"
        ),
    )
    return 4 if counts.failed or stopped else 0


async def _work(settings: Settings, idle: float) -> tuple[Counts, bool]:
    """Hash the objects of the queue's messages. Return the counts, and True if a signal ended the work early. idle: end
    after this many seconds without a message.
    """
    stopped = False
    async with open_processor(settings, WorkerOptions.of(settings)) as processor:
        worker = Worker(processor, Pace(messages=settings.concurrency or CONCURRENCY, idle=idle))

        def caught() -> None:
            nonlocal stopped
            stopped = True
            say("finishing small objects, leaving large ones; the rest stays on the queue")
            worker.stop()

        def interrupted() -> None:
            end_soon()
            caught()

        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupted)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, caught)
        started = time.monotonic()
        async with shown(lambda: _snapshot(worker, time.monotonic() - started)):
            return await worker.run(), stopped


def _snapshot(worker: Worker, seconds: float) -> Snapshot:
    counts = worker.counts
    return Snapshot(
        what="the queue",
        heard=worker.heard,
        objects=counts.hashed + counts.known + counts.superseded + counts.unhashable,
        seconds=seconds,
        detail=f"{counted(counts.messages, 'message')}, {counts.failed:,} failed, {counts.resent:,} sent again",
    )
