"""The verification as a Lambda function. A schedule or a person sends the event; the function returns the summaries."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from auditor.config.resources import Resources, open_resources
from auditor.errors import AuditorError, RunError, RunTaken
from auditor.lambdas.context import FunctionContext
from auditor.lambdas.event import Invocation
from auditor.lambdas.handover import FunctionStop, restart_event
from auditor.lambdas.metrics import measure
from auditor.lambdas.targets import TargetWork, Worked, each_target
from auditor.logs import bound
from auditor.model.target import Target
from auditor.text import visible
from auditor.verify.alert import outcome_sentence, verify_alert, verify_event
from auditor.verify.run import Hop, Verification
from auditor.verify.summary import VerifySummary

log = logging.getLogger(__name__)


class VerifyFunction:
    """The Lambda function that verifies buckets. One instance handles all events that its process gets."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._work = TargetWork(
            function="verify",
            noun="verification",
            failed="VerificationsFailed",
            handed_on="VerificationsHandedOn",
            needed=("ledger",),
            opening=partial(open_resources, hashing=False),
            run=self._verify,
        )

    async def handle(self, event: Mapping[str, Any], context: FunctionContext) -> dict[str, Any]:
        """Verify the targets that the event names, and return `{"runs": [SUMMARY, ..]}`, one summary for each target.

        Near the deadline, the verification stops, even in the middle of an object, and saves its state; the next
        invocation continues it.
        """
        return await each_target(self._work, event, self._environ, context)

    async def _verify(
        self, target: Target, invocation: Invocation, resources: Resources, stop: FunctionStop, context: FunctionContext
    ) -> Worked:
        hop = Hop(number=invocation.hop, verify_id=invocation.run, first_id=invocation.run_id(target))
        verification = Verification(target, invocation.settings, resources, stop, hop=hop)
        with bound(run=verification.verify_id):
            log.info("the verification of %s begins", visible(target.uri))
            try:
                summary = await verification.run()
            except AuditorError as error:
                if not isinstance(error, RunTaken):
                    again = restart_event(invocation.given, target, None)
                    named = f"the verification of {target.uri}, {verification.verify_id}"
                    error.args = (f"{named}: {error}; to read the rest, send the event {again}",)
                raise
            log.info("%s", outcome_sentence(summary))
            if context.successor is not None and bool(stop) and not summary.complete:
                if not verification.advanced:
                    raise RunError(
                        f"the verification of {target.uri} made no progress in a whole invocation: give the function"
                        " more time, verify by prefixes, or run `auditor verify` on a machine of its own"
                    )
                return Worked(summary, summary.resume)
            measure(self._environ, context, _metrics(summary), target)
        fail_on = invocation.settings.fail_on_outcomes
        await context.channels.tell(verify_alert(summary, fail_on), verify_event(summary, fail_on))
        return Worked(summary)


def _metrics(summary: VerifySummary) -> dict[str, float]:
    """Return the metrics for the end of a verification, by name.

    summary: that of the verification's last invocation, the only one that counts all objects.
    """
    outcomes = summary.outcomes
    return {
        "Verified": outcomes["match"] + outcomes["mismatch"],
        "Mismatches": outcomes["mismatch"],
        **{name: outcomes[name.lower()] for name in ("Missing", "Lost", "Changed", "Deleted", "New", "Unreadable")},
        "VerificationHoles": len(summary.holes),
        "VerifiedBytes": summary.read.bytes,
        "VerificationsComplete": int(summary.complete),
        "VerificationsIncomplete": int(not summary.complete),
    }
