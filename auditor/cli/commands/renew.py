"""The command `auditor renew`: read the objects again that the events on a queue name."""

from __future__ import annotations

import sys

from auditor.audit.renew import POLL, BatchRenewer, EventCounts, EventRenewer, Renewed
from auditor.aws.sqs import open_queue
from auditor.cli import signals
from auditor.cli.command_frame import CommandFrame, command
from auditor.cli.flags import IDLE, Flags
from auditor.cli.output import first_word
from auditor.cli.run_targets import Teller
from auditor.config.settings import CHANNELS
from auditor.config.values import seconds
from auditor.reports.alert import renewal_alert
from auditor.runs.reading import RunReader
from auditor.s3.rate import RateLimit
from auditor.text import counted


def declare_renew(flags: Flags) -> None:
    """Declare the flags of `auditor renew`.

    auditor renew --events https://sqs.eu-west-1.amazonaws.com/123456789012/s3-events --out s3://reports/audits
    """
    flags.add("--events SQS-URL", "the queue that S3 sends its events to", required=True)
    flags.settings(out="where the run folders are")
    flags.add("--idle SECONDS", IDLE, default="20")
    flags.settings("engine", "max_rate", *CHANNELS)
    flags.connection()


@command()
def run_renew(frame: CommandFrame) -> int:
    """Renew objects until the queue is empty, and return the exit code: 4 if a message stays or a fact could not be
    read, else 3 if an object is newly exposed.
    """
    idle = seconds(frame.options.idle, "--idle")
    first_word(f"asking the queue {frame.options.events}", longer=POLL)
    teller = Teller(frame.settings, "renewal")
    return signals.run(teller.around(_renew(frame, teller, idle)))


async def _renew(frame: CommandFrame, teller: Teller, idle: float) -> int:
    stop, settings = signals.stop_on_signals(), frame.settings

    async def told(of: RunReader, renewed: Renewed) -> None:
        await teller.tell(renewal_alert(of.bucket_name, of.run_id, renewed.exposed))

    with frame.store(settings.out) as store:
        names = {"region": settings.region, "profile": settings.profile}
        async with open_queue(frame.options.events, flag="--events", **names) as queue:
            renewer = BatchRenewer(store, settings, RateLimit(settings.max_rate), told)
            poll = min(POLL, max(1, int(idle)))
            counts: EventCounts = await EventRenewer(queue, renewer, stop, idle=idle, poll=poll).run()
    renewed = counts.renewed
    sys.stdout.write(
        f"{counted(counts.messages, 'message')}, {counts.failed:,} left on the queue:"
        f" {counted(renewed.objects, 'object')} read, {renewed.undecided:,} undecided,"
        f" {len(renewed.exposed):,} newly exposed\n"
    )
    return 4 if counts.failed or renewed.undecided or stop else 3 if renewed.exposed else 0
