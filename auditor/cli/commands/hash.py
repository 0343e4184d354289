"""The commands `auditor hash` and `work`: hash the objects of targets, or those that the messages of a queue name."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator

from auditor.aio.stop import Stop
from auditor.cli import signals
from auditor.cli.command_frame import CommandFrame, command
from auditor.cli.flags import IDLE, Flags
from auditor.cli.output import first_word, say
from auditor.cli.process_end import end_soon
from auditor.cli.progress import Show, shown
from auditor.cli.run_targets import each_target
from auditor.config.resources import ledger_of
from auditor.config.settings import Settings
from auditor.config.values import seconds
from auditor.hashing.limits import CONCURRENCY
from auditor.hashing.run import HashRun, HashRunSummary
from auditor.hashing.worker.counts import Counts
from auditor.hashing.worker.loop import Pace, Worker, open_processor
from auditor.hashing.worker.options import WorkerOptions
from auditor.ledger.base import Ledger
from auditor.model.target import NOTHING_LISTED, Target
from auditor.progress import Snapshot
from auditor.reports.summary import aside
from auditor.text import counted, healed_rows, visible


def declare_hash(flags: Flags) -> None:
    """Declare the flags of `auditor hash`.

    auditor hash s3://my-bucket --ledger sqlite:digests.db
    auditor hash s3://my-bucket/masters/ --ledger dynamodb:digests --algorithm sha256,md5
    auditor hash s3://my-bucket --ledger sqlite:digests.db --max-rate 50 --accept-cost
    """
    flags.show_daily("versions ledger algorithm accept-cost max-rate format profile config")
    flags.targets()
    flags.settings("allow_empty", "ledger", "algorithms", "streams", "accept_cost")
    flags.pace()
    flags.connection()
    flags.form()


@command("ledger")
def run_hash(frame: CommandFrame) -> int:
    """Hash the objects of each target, print their counts, and return the exit code."""

    async def one(target: Target, ledger: Ledger, stop: Stop, show: Show) -> int:
        hashing = HashRun(target, frame.settings, ledger, stop)
        async with show(hashing.snapshot):
            counts = await hashing.run()
        uri = visible(f"s3://{counts.target.bucket}/{counts.target.prefix}")
        frame.print_lines(counts, (f"{uri}: {line}" for line in _lines(counts)))
        return counts.exit_code

    kept = "the ledger has what was hashed"
    return signals.run(each_target(frame.targets, ledger_of(frame.settings), one, verb="hashed", kept=kept))


def _lines(counts: HashRunSummary) -> Iterator[str]:
    hashing = counts.hashing
    yield (
        f"{counted(hashing.hashed_now, 'object')} hashed now,"
        f" {hashing.known:,} known before, {hashing.unhashable:,} cannot be hashed,"
        f" {counts.failed:,} failed, {counts.replaced:,} replaced, complete: {'yes' if counts.complete else 'NO'}"
    )
    if counts.holes:
        yield f"HOLE: {'; '.join(counts.holes)}"
    if counts.accepted:
        yield f"accepted in the configuration: {counted(counts.accepted, 'object')}"
    if counts.complete and not sum(hashing.counts.values()):
        allow = ", or pass --allow-empty" if NOTHING_LISTED in counts.holes else ""
        yield f"nothing is listed: check the bucket and the prefix{allow}"
    yield from (*aside(hashing), *healed_rows(counts.healed))


def declare_work(flags: Flags) -> None:
    """Declare the flags of `auditor work`.

    auditor work --queue https://sqs.eu-west-1.amazonaws.com/123456789012/hash --ledger dynamodb:digests
    auditor work --queue https://sqs.eu-west-1.amazonaws.com/123456789012/hash --ledger sqlite:d.db --idle 60
    """
    flags.settings(queue="the queue that audits send to")
    flags.settings("ledger", "algorithms", "streams")
    flags.add("--idle SECONDS", IDLE, default="20")
    flags.settings(engine="client that reads: direct, aioboto3 or boto3", concurrency="most objects read at once")
    flags.connection()
    flags.form()


@command("queue", "ledger")
def run_work(frame: CommandFrame) -> int:
    """Hash the objects of the queue's messages until it is empty, print their counts, and return the exit code."""
    idle = seconds(frame.options.idle, "--idle")
    first_word(f"asking the queue {frame.settings.queue}", longer=Pace().poll)
    counts, stopped = signals.run(_work(frame.settings, idle))
    line = (
        f"{counted(counts.messages, 'message')}: {counted(counts.hashed, 'object')} hashed,"
        f" {counts.known:,} known before, {counts.superseded:,} superseded, {counts.unhashable:,} cannot be hashed,"
        f" {counts.failed:,} failed ({counts.dead_lettered:,} on the dead-letter queue),"
        f" {counts.resent:,} sent again, {counts.continued:,} left to the next worker,"
        f" {', '.join([f'{counts.left_for_cost:,} left because of their cost', *healed_rows(counts.healed)])}"
    )
    frame.print_lines(counts, [line])
    return 4 if counts.failed or stopped else 0


async def _work(settings: Settings, idle: float) -> tuple[Counts, bool]:
    """Hash the objects of the queue's messages. Return the counts, and True if a signal ended the work early. idle: end
    after this many seconds without a message.
    """
    stopped = False
    async with open_processor(settings, WorkerOptions.of(settings)) as processor:
        worker = Worker(processor, Pace(messages=settings.concurrency or CONCURRENCY, idle=idle))

        def caught(number: signal.Signals) -> None:
            nonlocal stopped
            stopped = True
            if number is signal.SIGINT:
                end_soon()
            say("finishing small objects, leaving large ones; the rest stays on the queue")
            worker.stop()

        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, caught, number)
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
