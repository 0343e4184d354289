"""Renew the objects that S3's events name, as a Lambda function. It gets batches of SQS messages, and returns the IDs
of the messages that must come again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from auditor.audit.renew import BatchOutcome, BatchRenewer, OpenRenewer, Renewed, open_renewer
from auditor.aws.sqs import Received, open_queue
from auditor.config.file import load_settings
from auditor.config.settings import Settings
from auditor.errors import AuditorError
from auditor.hashing.worker.dead_letters import given_up
from auditor.lambdas.invocation_frame import FunctionContext
from auditor.lambdas.sqs_batch import answer_of, message_id, received_of, records_of
from auditor.logs import bound
from auditor.reports.alert import renewal_alert
from auditor.runs.reading import RunReader
from auditor.runs.stores import open_store
from auditor.s3.rate import RateLimit

log = logging.getLogger(__name__)


class RenewFunction:
    """The Lambda function that renews objects. One instance handles all events that its process gets.

    opening: opens a renewer for the objects of a run.
    """

    def __init__(self, environ: Mapping[str, str], opening: OpenRenewer = open_renewer) -> None:
        self._environ = environ
        self._opening = opening
        self._rate: RateLimit | None = None

    async def handle(self, event: object, context: FunctionContext) -> dict[str, Any]:
        """Read the objects that the messages of an SQS event name, and write their lines below renewals/.

        The result is `{"batchItemFailures": [{"itemIdentifier": ID}, ..]}`: the messages that SQS must deliver again.
        A message that nothing can make readable goes to the dead-letter queue with the reason. Raises AuditorError if
        the event or a setting is wrong.
        """
        with bound(requestId=context.request), context.stopping(context.seconds_left) as stop:
            try:
                named = [(message_id(record), record) for record in records_of(event)]
                settings = load_settings(environ=self._environ, needed=("out",), function="renew")
            except AuditorError as error:
                log.error("the invocation failed: %s", error)
                raise
            batch = [one for name, record in named if (one := received_of(name, record)) is not None]
            left = {name for name, _ in named} - {one.id for one in batch}
            if left:
                log.warning("%d messages have no body or no receiptHandle: they are left on the queue", len(left))
            async with stop.all() as limit:
                left |= await self._renewed(batch, settings, context.with_settings(settings))
            if limit.expired():
                log.error(
                    "S3 or the reports bucket did not answer before the end (%s): all of it will be redelivered",
                    stop.reason,
                )
                left = {name for name, _ in named}
        return answer_of(name for name, _ in named if name in left)

    async def _renewed(self, batch: Sequence[Received], settings: Settings, context: FunctionContext) -> set[str]:
        """Renew the objects of a batch, and return the IDs of the messages that must come again."""
        self._rate = self._rate or RateLimit(settings.max_rate)  # all invocations of this process take turns in one row

        async def told(run: RunReader, renewed: Renewed) -> None:
            await context.channels.tell(renewal_alert(run.bucket_name, run.run_id, renewed.exposed))

        profile, region = settings.profile, settings.region
        with open_store(settings.out, endpoint_url=settings.endpoint_url, profile=profile, region=region) as store:
            renewer = BatchRenewer(store, settings, self._rate, told, opening=self._opening)
            outcome = await renewer.renew(batch)
        left = outcome.failed | await _put_away(batch, outcome, settings)
        found = renewer.counts.renewed
        words = "%d messages, of which %d will be redelivered: %d objects read, %d undecided, %d newly exposed"
        log.info(words, len(batch), len(left), found.objects, found.undecided, len(found.exposed))
        return {*left}


async def _put_away(batch: Sequence[Received], outcome: BatchOutcome, settings: Settings) -> set[str]:
    """Send the malformed messages to the dead-letter queue, each with its reason. Return the IDs of those that it did
    not take: SQS moves them there itself, after their last receipt.
    """
    letters = [(one, given_up(one, outcome.malformed[one.id])) for one in batch if one.id in outcome.malformed]
    for received, _ in letters:
        log.warning(
            "message %s is malformed, and becomes a dead letter: %s", received.id, outcome.malformed[received.id]
        )
    if not letters or settings.dead_letter_queue is None:
        return {received.id for received, _ in letters}
    try:
        profile, region = settings.profile, settings.region
        async with open_queue(settings.dead_letter_queue, region=region, profile=profile) as queue:
            refused = [one.entry for one in await queue.send([letter for _, letter in letters])]
    except AuditorError as error:
        log.error("the dead-letter queue did not take the malformed messages: %s", error)
        return {received.id for received, _ in letters}
    return {received.id for received, letter in letters if letter in refused}
