"""The command `auditor renew`: read the objects again that the events on a queue name."""

from __future__ import annotations

import argparse
import sys

from auditor.audit.renewal.events import POLL, BatchRenewer, EventCounts, EventRenewer
from auditor.audit.renewal.renew import Renewed
from auditor.aws.sqs import open_queue
from auditor.cli import signals
from auditor.cli.options import settings_of
from auditor.cli.output import first_word
from auditor.cli.telling import Teller
from auditor.config.settings import Settings
from auditor.config.values import seconds
from auditor.reports.renewal_alert import renewal_alert
from auditor.runs.reading import RunReader
from auditor.runs.stores import open_store
from auditor.s3.rate import RateLimit
from auditor.text import counted


def run(options: argparse.Namespace) -> int:
    """Renew objects until the queue is empty, and return the exit code: 4 if a message stays or a fact could not be
    read, else 3 if an object is newly exposed.
    """
    settings = settings_of(options)
    idle = seconds(options.idle, "--idle")
    first_word(f"asking the queue {options.events}", longer=POLL)
    return signals.run(_renew(options.events, settings, idle))


async def _renew(events: str, settings: Settings, idle: float) -> int:
    stop, teller = signals.stop_on_signals(), Teller(settings, "renewal")
    counts = EventCounts()

    async def told(of: RunReader, renewed: Renewed) -> None:
        await teller.tell(renewal_alert(of.bucket_name, of.run_id, renewed.exposed))

    async def work() -> int:
        nonlocal counts
        with open_store(settings.out, **settings.connection) as store:
            async with open_queue(events, flag="--events", region=settings.region, profile=settings.profile) as queue:
                poll = min(POLL, max(1, int(idle)))
                renewer = BatchRenewer(store, settings, RateLimit(settings.max_rate), told)
                counts = await EventRenewer(queue, renewer, stop, idle=idle, poll=poll).run()
        renewed = counts.renewed
        sys.stdout.write(
            f"{counted(counts.messages, 'message')}, {counts.failed:,} left on the queue:"
            f" {counted(renewed.objects, 'object')} read, {renewed.undecided:,} undecided,"
            f" {len(renewed.exposed):,} newly exposed\n"
        )
        return 4 if counts.failed or renewed.undecided or stop else 3 if renewed.exposed else 0

    return await teller.around(work())
