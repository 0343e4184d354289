"""The verification as a Lambda function. A schedule, a person or the state machine sends the event."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

from auditor.config.resources import Resources, open_resources
from auditor.errors import AuditorError, RunComplete, RunError, RunTaken
from auditor.lambdas.deadline import DEADLINE, FunctionStop, in_time, opened
from auditor.lambdas.event import Invocation, read_event, run_of
from auditor.lambdas.invocation_frame import MOST_FRUITLESS, FunctionCall, FunctionContext, invoked
from auditor.logs import bound
from auditor.model.target import Target
from auditor.text import visible
from auditor.verify.alert import outcome_sentence, verify_alert, verify_event
from auditor.verify.run import Verification
from auditor.verify.summary import VerifySummary

log = logging.getLogger(__name__)


class VerifyFunction:
    """The Lambda function that verifies buckets. One instance handles all events that its process gets."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ

    async def handle(self, event: Mapping[str, Any], context: FunctionContext) -> dict[str, Any]:
        """Verify the targets that the event names, and return `{"runs": [SUMMARY, ..]}`, one summary for each target.

        Near the deadline, the verification stops, even in the middle of an object, and saves its state. The state
        machine continues it, and each verification that was not begun: the result has the ARNs of the executions in its
        list `executions`. An event of the state machine names a verification; the answer then has `again`, true if the
        machine sends the event again, and `event`.

        Raises AuditorError. The failure of one target is raised after the work on all other targets.
        """
        read = partial(read_event, event, self._environ, "verify", ("ledger",), context.request)
        names = {"noun": "verification", "failed": "VerificationsFailed"}
        async with invoked(read, _opened, self._environ, context, **names) as call:
            work, verify_id = _VerifyWork(call), call.invocation.verification
            return await (work.targets() if verify_id is None else work.step(verify_id))


def _opened(invocation: Invocation, stop: FunctionStop) -> AbstractAsyncContextManager[Resources]:
    again = "; ".join(invocation.again(target, None) for target in invocation.targets)
    silent = "the ledger or the reports bucket did not answer"
    opening = open_resources(invocation.settings, invocation.targets, hashing=False)
    return opened(opening, stop, f"no verification was started: {silent}; start again with the event {again}")


class _VerifyWork:
    """The work of one invocation."""

    def __init__(self, call: FunctionCall) -> None:
        self._call = call
        self._invocation = call.invocation
        self._stop = call.stop
        self._machine = call.context.machine
        self._runs: list[dict[str, Any]] = []
        self._more: dict[str, list[str]] = {}

    async def targets(self) -> dict[str, Any]:
        """Verify each target, and leave the rest to the state machine."""
        failures: list[AuditorError] = []
        for target in self._invocation.targets:
            verify_id = run_of(self._invocation.start_id, target)
            with bound(bucket=target.bucket, run=verify_id):
                try:
                    if self._stop or await self._verified(target, verify_id):
                        await self._hand_on(target, verify_id)
                except (RunTaken, RunComplete) as other:
                    self._more.setdefault("left", []).append(str(other))
                except AuditorError as error:
                    failures.append(error)
        if failures:
            raise RunError("; ".join(map(str, failures))) if failures[1:] else failures[0]
        return {"runs": self._runs, **self._more}

    async def step(self, verify_id: str) -> dict[str, Any]:
        """Continue a verification, as a step of the state machine."""
        (target,) = self._invocation.targets
        again = False
        with bound(bucket=target.bucket, run=verify_id):
            try:
                again = await self._verified(target, verify_id)
            except RunComplete as complete:  # the answer of an earlier invocation was lost
                log.info("%s", complete)
        return {"again": again, "event": self._invocation.event, "runs": [] if again else self._runs}

    async def _verified(self, target: Target, verify_id: str) -> bool:
        """Verify a target. Return True if something is left for the next invocation."""
        verification = Verification(target, self._call.settings, self._call.stores, self._stop, verify_id=verify_id)
        log.info("the verification of %s begins", visible(target.uri))
        try:
            silent = "a server did not answer before the deadline"
            summary = await in_time(verification.run(), self._stop.all(), silent)
        except (RunTaken, RunComplete):
            raise
        except AuditorError as error:
            again = self._invocation.again(target, None)
            named = f"the verification of {target.uri}, {verify_id}"
            error.args = (f"{named}: {error}; to read the rest, send the event {again}",)
            raise
        self._runs.append(summary.to_dict())
        log.info("%s", outcome_sentence(summary))
        if self._machine is not None and bool(self._stop) and not summary.complete:
            if verification.fruitless > MOST_FRUITLESS:
                raise RunError(
                    f"the verification of {target.uri} made no progress in {verification.fruitless} invocations: give"
                    " the function more time, verify by prefixes, or run `auditor verify` on a machine of its own"
                )
            return True
        self._call.measure(_metrics(summary), target)
        fail_on = self._call.settings.fail_on_outcomes
        await self._call.context.channels.tell(verify_alert(summary, fail_on), verify_event(summary, fail_on))
        async with self._stop.telling():
            await verification.conclude()
        return False

    async def _hand_on(self, target: Target, verify_id: str) -> None:
        """Start the state machine for a verification. Raises RunError, which has the event that a person can send
        instead.
        """
        given = {name: value for name, value in self._invocation.event.items() if name not in ("bucket", "prefix")}
        event = {**given, "bucket": target.bucket, "prefix": target.prefix, "verification": verify_id}
        try:
            if self._machine is None:
                raise RunError(DEADLINE)
            starting = self._machine.start(verify_id, event)
            arn = await in_time(starting, self._stop.handing_on(), "Step Functions did not answer")
            self._more.setdefault("executions", []).append(arn)
        except RunError as error:
            again = self._invocation.again(target, None)
            raise RunError(
                f"the verification of {target.uri}, {verify_id}, is not handed on: {error}; start it again with the"
                f" event {again}"
            ) from error
        log.info("the verification of %s is left to the state machine", visible(target.uri))
        self._call.measure({"VerificationsHandedOn": 1})


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
