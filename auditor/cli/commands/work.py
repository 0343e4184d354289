"""`auditor work`."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from dataclasses import asdict

from auditor.aio import loop as loops
from auditor.aio.groups import task_group
from auditor.cli.options import check_needed, print_json, settings_of
from auditor.cli.progress import Progress, make_progress
from auditor.config.settings import Settings
from auditor.config.values import seconds
from auditor.hashing.worker.counts import Counts
from auditor.hashing.worker.loop import Pace, Worker, processor_of
from auditor.hashing.worker.options import CONCURRENCY
from auditor.progress import Snapshot
from auditor.text import counted


def run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    check_needed(settings, "queue", "ledger")
    idle = seconds(options.idle, "--idle")
    counts, stopped = loops.run(_work(settings, idle))
    if options.format == "json":
        print_json(asdict(counts))
    else:
        sys.stdout.write(
            f"{counted(counts.messages, 'message')}: {counted(counts.hashed, 'object')} hashed,"
            f" {counts.known:,} known before, {counts.superseded:,} superseded, {counts.unhashable:,} cannot be hashed,"
            f" {counts.failed:,} failed ({counts.dead_lettered:,} on the dead-letter queue),"
            f" {counts.resent:,} sent again, {counts.continued:,} left to the next worker,"
            f" {counts.left_for_cost:,} left for their cost\n"
        )
    return 4 if counts.failed or stopped else 0


async def _work(settings: Settings, idle: float) -> tuple[Counts, bool]:
    """The counts, and whether a signal ended the work before the queue was empty."""
    stopped = False
    async with processor_of(settings) as processor:
        worker = Worker(processor, Pace(messages=settings.concurrency or CONCURRENCY, idle=idle))

        def caught() -> None:
            nonlocal stopped
            stopped = True
            sys.stderr.write("auditor: finishing small objects, leaving large ones; the rest stays on the queue\n")
            worker.stop()

        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, caught)
        progress = make_progress()
        async with task_group() as group:
            ticker = group.create_task(_show(worker, progress))
            try:
                return await worker.run(), stopped
            finally:
                ticker.cancel()
                progress.close()


async def _show(worker: Worker, progress: Progress) -> None:
    started = time.monotonic()
    while True:
        await asyncio.sleep(1.0)
        counts = worker.counts
        progress.update(
            Snapshot(
                what="the queue",
                objects=counts.hashed + counts.known + counts.superseded + counts.unhashable,
                seconds=time.monotonic() - started,
                detail=f"{counted(counts.messages, 'message')}, {counts.failed:,} failed, {counts.resent:,} sent again",
            )
        )
