"""Verifying as a function: a schedule's or a person's event in, summaries out; handed on to itself at its deadline."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

from auditor.aio.stop import Stop
from auditor.config.resources import VerifyResources, open_verify_resources
from auditor.errors import RunError
from auditor.lambdas.alerts import alert
from auditor.lambdas.context import FunctionContext
from auditor.lambdas.event import Invocation, read_event
from auditor.lambdas.handover import short_of
from auditor.lambdas.targets import EachTarget, failures_told, measure
from auditor.logs import bound
from auditor.model.target import Target
from auditor.text import visible
from auditor.verify.run import Hop, Verification
from auditor.verify.summary import VerifySummary

log = logging.getLogger(__name__)


class VerifyFunction:
    """Lives as long as its process."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ

    async def handle(self, event: Mapping[str, Any], around: FunctionContext) -> dict[str, Any]:
        """`{"runs": [SUMMARY, ..]}`, one for each target. Raises AuditorError for what cannot be verified: a target
        that fails keeps no other from its turn, and is raised at the end.

        Events are those of an audit (auditor.lambdas.event). Short of the deadline a verification stops, objects in
        mid-read too, and is handed on with what it has; of an event that came twice one copy does the work.
        """
        async with failures_told(self._environ, around, "VerificationsFailed", "A verification"):
            invocation = read_event(event, self._environ, "verify", ("ledger",))
            with short_of(around.seconds_left) as stop:
                turns = EachTarget(
                    what="verification",
                    invocation=invocation,
                    stop=stop,
                    around=around,
                )
                async with open_verify_resources(invocation.settings, invocation.targets) as places:
                    return await turns.all(lambda target: self._one(target, invocation, places, stop, around))

    async def _one(
        self, target: Target, invocation: Invocation, places: VerifyResources, stop: Stop, around: FunctionContext
    ) -> VerifySummary:
        hop = Hop(number=invocation.hop, verify_id=invocation.run)
        verification = Verification(target, invocation.settings, places, stop, hop=hop)
        with bound(run=verification.verify_id):
            log.info("the verification of %s begins", visible(target.uri))
            summary = await verification.run()
            goes_on = around.successor is not None and bool(stop) and not summary.complete
            log.info("%s", _sentence(summary))
            measure(self._environ, around, _metrics(summary, handed_on=goes_on))
            if goes_on and not verification.advanced:
                raise RunError(
                    f"the verification of {target.uri} came no further in a whole invocation: give the function more"
                    " time, or verify by prefixes, or with the command on a machine of its own"
                )
        if not goes_on:
            await alert(around.topic, message(summary))
        return summary


def message(summary: VerifySummary) -> str | None:
    """What to say of a verification; None when nothing is wrong: counts and the prefix, never keys."""
    outcomes, target = summary.outcomes, summary.target
    wrong = {name: outcomes[name] for name in ("mismatch", "missing", "unreadable") if outcomes[name]}
    if not wrong and summary.complete:
        return None
    counts = ", ".join(f"{count:,} {name}" for name, count in wrong.items()) or "nothing wrong so far"
    end = "" if summary.complete else " It did not come to its end."
    return (
        f"The verification of s3://{target.bucket}/{visible(target.prefix)} found {counts}.{end}\n"
        f"{_sentence(summary)}\nReport: {summary.out}/summary.json"
    )


def _sentence(summary: VerifySummary) -> str:
    told = ", ".join(f"{name} {count:,}" for name, count in summary.outcomes.items() if count)
    end = "complete" if summary.resume is None else f"not complete ({summary.resume.reason})"
    return f"{end}: listed {summary.listed:,}, in the ledger alone {summary.ledger_only:,}; {told or 'nothing'}"


def _metrics(summary: VerifySummary, *, handed_on: bool) -> dict[str, float]:
    """One that is handed on counts its objects when it ends."""
    if handed_on:
        return {"VerificationsHandedOn": 1}
    outcomes = summary.outcomes
    return {
        "Verified": outcomes["match"] + outcomes["mismatch"],
        "Mismatches": outcomes["mismatch"],
        "Missing": outcomes["missing"],
        "Unreadable": outcomes["unreadable"],
        "VerifiedBytes": summary.read.bytes,
        "VerificationsComplete": int(summary.complete),
        "VerificationsIncomplete": int(not summary.complete),
    }
