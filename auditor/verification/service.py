"""Verifying as a function: a schedule's or a person's event in, summaries out; handed on to itself at its deadline."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from typing import Any, Final

from auditor.alerts import alert
from auditor.deadline import DEADLINE, short_of
from auditor.errors import AuditorError, RunError, RunTaken, UsageError
from auditor.handover import next_event
from auditor.invocation import Invocation, Surroundings, read_event
from auditor.logs import bound, labels
from auditor.metrics import emf
from auditor.stop import Stop
from auditor.target import Target
from auditor.text import visible
from auditor.verification.running import Hop, Verification
from auditor.verification.surroundings import Surroundings as Places
from auditor.verification.surroundings import surroundings

EVENT_SETTINGS: Final = frozenset(
    {
        "engine",
        "concurrency",
        "max_rate",
        "max_calls",
        "versions",
        "max_age",
        "percent",
        "every",
        "grace",
        "retry_attempts",
        "retry_seconds",
    }
)
"""What an event may set. What is recorded, what may cost, and where reports go is the deployment's to say."""

_LONGEST: Final = 1000

log = logging.getLogger(__name__)


class VerifyService:
    """Lives as long as its process."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ

    async def handle(self, event: Mapping[str, Any], around: Surroundings) -> dict[str, Any]:
        """`{"runs": [SUMMARY, ..]}`, one for each target. Raises AuditorError for what cannot be verified: a target
        that fails keeps no other from its turn, and is raised at the end.

        Events are those of an audit (auditor.invocation). Short of the deadline a verification stops, objects in
        mid-read too, and is handed on with what it has; of an event that came twice one copy does the work.
        """
        with bound(requestId=around.request):
            try:
                invocation = read_event(event, self._environ, EVENT_SETTINGS)
                if invocation.settings.ledger is None:
                    raise UsageError("AUDITOR_LEDGER is not set: the verifying function needs it")
                with short_of(around.seconds_left) as stop:
                    return await self._verify(event, invocation, stop, around)
            except AuditorError as error:
                log.error("the invocation failed: %s", error)
                self._measure(around, {"VerificationsFailed": 1})
                await alert(around.topic, f"A verification failed: {visible(str(error))[:_LONGEST]}")
                raise

    async def _verify(
        self, event: Mapping[str, Any], invocation: Invocation, stop: Stop, around: Surroundings
    ) -> dict[str, Any]:
        summaries: list[dict[str, Any]] = []
        failures: list[str] = []
        left: list[str] = []
        async with surroundings(invocation.settings, invocation.targets) as places:
            for target in invocation.targets:
                with bound(bucket=target.bucket, hop=invocation.hop):
                    try:
                        summary = None
                        if not stop:
                            summary = await self._one(target, invocation, places, stop, around)
                            summaries.append(summary)
                        if stop and (summary is None or not summary["complete"]):
                            await _hand_on(event, target, invocation.hop, summary, around)
                    except RunTaken as other:
                        left.append(str(other))
                    except RunError as error:
                        failures.append(str(error))
        if failures:
            raise RunError("; ".join(failures))
        return {"runs": summaries, **({"left": left} if left else {})}

    async def _one(
        self, target: Target, invocation: Invocation, places: Places, stop: Stop, around: Surroundings
    ) -> dict[str, Any]:
        hop = Hop(number=invocation.hop, verify_id=invocation.run)
        verification = Verification(target, invocation.settings, places, stop, hop=hop)
        with bound(run=verification.verify_id):
            log.info("the verification of %s begins", visible(target.uri))
            summary = await verification.run()
            goes_on = around.successor is not None and bool(stop) and not summary["complete"]
            log.info("%s", _sentence(summary))
            self._measure(around, _metrics(summary, handed_on=goes_on))
            if goes_on and not verification.advanced:
                raise RunError(
                    f"the verification of {target.uri} came no further in a whole invocation: give the function more"
                    " time, or verify by prefixes, or with the command on a machine of its own"
                )
        if not goes_on:
            await alert(around.topic, message(summary))
        return summary

    def _measure(self, around: Surroundings, values: Mapping[str, float]) -> None:
        service = self._environ.get("AUDITOR_SERVICE") or "s3-auditor"
        around.emit(emf(values, service=service, milliseconds=int(time.time() * 1000), **labels()))


async def _hand_on(
    event: Mapping[str, Any], target: Target, hop: int, summary: Mapping[str, Any] | None, around: Surroundings
) -> None:
    if around.successor is None:
        if summary is None:
            raise RunError(f"{target.uri} was not verified: {DEADLINE}")
        return
    settings = {name: value for name, value in event.items() if name in EVENT_SETTINGS}
    run = summary and {"run": summary["verify"], "start_after": summary["resume"]["start_after"]}
    await around.successor.invoke(next_event(settings, target, hop, run))
    log.info("the verification of %s is handed on to hop %d", visible(target.uri), hop + 1)


def message(summary: Mapping[str, Any]) -> str | None:
    """What to say of a verification; None when nothing is wrong: counts and the prefix, never keys."""
    outcomes, target = summary["outcomes"], summary["target"]
    wrong = {name: outcomes[name] for name in ("mismatch", "missing", "unreadable") if outcomes[name]}
    if not wrong and summary["complete"]:
        return None
    counts = ", ".join(f"{count:,} {name}" for name, count in wrong.items()) or "nothing wrong so far"
    end = "" if summary["complete"] else " It did not come to its end."
    return (
        f"The verification of s3://{target['bucket']}/{visible(target['prefix'])} found {counts}.{end}\n"
        f"{_sentence(summary)}\nReport: {summary['out']}/summary.json"
    )


def _sentence(summary: Mapping[str, Any]) -> str:
    told = ", ".join(f"{name} {count:,}" for name, count in summary["outcomes"].items() if count)
    end = "complete" if summary["complete"] else f"not complete ({summary['resume']['reason']})"
    return f"{end}: listed {summary['listed']:,}, in the ledger alone {summary['ledger_only']:,}; {told or 'nothing'}"


def _metrics(summary: Mapping[str, Any], *, handed_on: bool) -> dict[str, float]:
    """One that is handed on counts its objects when it ends."""
    if handed_on:
        return {"VerificationsHandedOn": 1}
    outcomes = summary["outcomes"]
    return {
        "Verified": outcomes["match"] + outcomes["mismatch"],
        "Mismatches": outcomes["mismatch"],
        "Missing": outcomes["missing"],
        "Unreadable": outcomes["unreadable"],
        "VerifiedBytes": summary["read"]["bytes"],
        "VerificationsComplete": int(summary["complete"]),
        "VerificationsIncomplete": int(not summary["complete"]),
    }
