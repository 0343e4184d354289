"""The audit as a function: a schedule's or a person's event in, summaries out; settings: event, environment, file."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from auditor.alerts import SnsTopic, Topic, alert, failure_message, hole_message
from auditor.config import load
from auditor.deadline import DEADLINE, short_of
from auditor.engines import open_engine
from auditor.errors import AuditorError, RunComplete, RunError, RunTaken, UsageError
from auditor.handover import OwnFunction, Successor, next_event
from auditor.logs import bound, labels
from auditor.metrics import emf, of_run
from auditor.pipeline import Audit
from auditor.places import OpenChoice, Places, open_places
from auditor.settings import PARSERS, Layer, Settings, environment_layer, resolve
from auditor.stop import Stop
from auditor.target import Target, parse_target
from auditor.text import visible

EVENT_SETTINGS: Final = frozenset(
    {
        "engine",
        "concurrency",
        "max_rate",
        "max_calls",
        "versions",
        "only",
        "ignore",
        "fail_on",
        "algorithms",
        "retry_attempts",
        "retry_seconds",
    }
)
"""What an event may set. Where results go is the deployment's to say, not the invoker's."""

EVENT_TARGET: Final = frozenset({"bucket", "prefix", "start_after", "stop_at", "run", "hop"})
_ENVELOPE: Final = frozenset({"source", "detail-type"})

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Invocation:
    """One event, read. run: the run that goes on; hop: how often it was handed on."""

    targets: tuple[Target, ...]
    settings: Settings
    run: str | None
    hop: int


def read_event(
    event: Mapping[str, Any], environ: Mapping[str, str], allowed: frozenset[str] = EVENT_SETTINGS
) -> Invocation:
    """`{}` or an EventBridge envelope: every configured bucket; `{"bucket": ..}`: that one. Raises UsageError.

    allowed: settings that it may have.
    """
    if not isinstance(event, Mapping):
        raise UsageError('the event is not a JSON object: send {} or {"bucket": "my-bucket"}')
    if event.keys() >= _ENVELOPE:
        event = {}
    if unknown := sorted(map(str, event.keys() - allowed - EVENT_TARGET)):
        raise UsageError(
            f"the event's field {unknown[0][:100]!r} is unknown: use {', '.join(sorted(EVENT_TARGET | allowed))}"
        )
    file, tables = load(environ.get("AUDITOR_CONFIG") or None)
    mine = Layer({name: event[name] for name in event.keys() & PARSERS.keys()}, lambda name: f"the event's {name}")
    settings = resolve([mine, environment_layer(environ), file], tables)
    targets = _targets(event, settings)
    run, hop = event.get("run"), event.get("hop", 0)
    if run is not None and (not isinstance(run, str) or len(targets) != 1):
        raise UsageError("the event's run needs its one bucket beside it, and is a run ID")
    if type(hop) is not int or hop < 0:
        raise UsageError("the event's hop is not a whole number from 0")
    return Invocation(targets, settings, run, hop)


def _targets(event: Mapping[str, Any], settings: Settings) -> tuple[Target, ...]:
    for name in ("bucket", "prefix", "start_after", "stop_at"):
        if event.get(name) is not None and not isinstance(event[name], str):
            raise UsageError(f"the event's {name} is not a text")
    if "bucket" in event:
        if not event["bucket"]:  # null too: whoever means all of them says nothing
            raise UsageError("the event's bucket is empty: name one, or leave the field out to audit every bucket")
        uris: tuple[str, ...] = (f"s3://{event['bucket']}/{event.get('prefix') or ''}",)
    else:
        if stray := sorted(event.keys() & (EVENT_TARGET - {"bucket"})):
            raise UsageError(f"the event's {stray[0]} needs a bucket beside it")
        uris = tuple(name if "://" in name else f"s3://{name}" for name in settings.buckets)
    if not uris:
        raise UsageError("no bucket to audit: set AUDITOR_BUCKETS, or name one in the event")
    return tuple(
        parse_target(
            uri,
            versions=settings.versions,
            start_after=event.get("start_after") if event.get("run") is None else None,
            stop_at=event.get("stop_at"),
        )
        for uri in uris
    )


def print_line(line: str) -> None:
    """To the log stream as it is: CloudWatch finds metrics only in lines that are JSON from end to end."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a function has around it. seconds_left: until its deadline. successor: who goes on after it; None: nobody.

    topic: where alerts go; None: nowhere. emit: takes a line of metrics. request: the invocation's ID, for the logs.
    """

    seconds_left: float
    successor: Successor | None = None
    topic: Topic | None = None
    emit: Callable[[str], object] = print_line
    request: str | None = None

    @classmethod
    def of(cls, context: Any, environ: Mapping[str, str] = os.environ) -> Surroundings:
        """From Lambda's context object. AUDITOR_HANDS_ON: the function may invoke itself; AUDITOR_TOPIC: an ARN."""
        hands_on = environ.get("AUDITOR_HANDS_ON", "").lower() == "true"
        topic = environ.get("AUDITOR_TOPIC")
        return cls(
            seconds_left=context.get_remaining_time_in_millis() / 1000,
            successor=OwnFunction(context.invoked_function_arn) if hands_on else None,
            topic=SnsTopic(topic) if topic else None,
            request=getattr(context, "aws_request_id", None),
        )


class AuditService:
    """Lives as long as its process. engines: opens one for each run, or lends one that is kept for the next event."""

    def __init__(self, environ: Mapping[str, str] = os.environ, *, engines: OpenChoice = open_engine) -> None:
        self._environ = environ
        self._engines = engines

    async def handle(self, event: Mapping[str, Any], around: Surroundings) -> dict[str, Any]:
        """`{"runs": [SUMMARY, ..]}`, one for each target. Raises AuditorError for what cannot be run: a target that
        fails keeps no other from its audit, and is raised at the end.

        Short of the deadline a run stops listing, finishes what is in flight, saves its parts and is handed on; so is
        each target that was not reached. Without a successor its summary says how to go on.

        A run that another invocation writes, or has ended, is left to that one: of an event that came twice one copy
        does the work, and the other answers with a sentence in `left`.
        """
        with bound(requestId=around.request):
            try:
                invocation = read_event(event, self._environ)
                with short_of(around.seconds_left) as stop:
                    return await self._audit(event, invocation, stop, around)
            except AuditorError as error:
                log.error("the invocation failed: %s", error)
                self._measure(around, {"RunsFailed": 1})
                await alert(around.topic, failure_message(str(error)))
                raise

    async def _audit(
        self, event: Mapping[str, Any], invocation: Invocation, stop: Stop, around: Surroundings
    ) -> dict[str, Any]:
        summaries: list[dict[str, Any]] = []
        failures: list[RunError] = []
        left: list[str] = []
        async with open_places(invocation.settings, invocation.targets, self._engines) as places:
            for target in invocation.targets:
                with bound(bucket=target.bucket, hop=invocation.hop):
                    try:
                        summary = None
                        if not stop:
                            summary = await self._audit_one(target, invocation, places, stop, around)
                            summaries.append(summary)
                        if stop and (summary is None or not summary["complete"]):
                            await self._hand_on(event, target, invocation.hop, summary, around)
                    except (RunTaken, RunComplete) as other:
                        left.append(str(other))
                    except RunError as error:
                        failures.append(error)
        if len(failures) > 1:
            raise RunError("; ".join(map(str, failures)))
        if failures:
            raise failures[0]
        return {"runs": summaries, **({"left": left} if left else {})}

    async def _audit_one(
        self, target: Target, invocation: Invocation, places: Places, stop: Stop, around: Surroundings
    ) -> dict[str, Any]:
        hands_on = around.successor is not None
        audit = Audit(
            target,
            invocation.settings,
            places,
            stop,
            run_id=invocation.run,
            hop=invocation.hop,
            hands_on=hands_on,
        )
        with bound(run=audit.run_id):
            log.info("the audit of %s %s", visible(target.uri), "begins" if invocation.run is None else "goes on")
            summary = await _run(audit)
            goes_on = hands_on and bool(stop) and not summary["complete"]
            log.info("%s", _outcome(summary, stop if goes_on else None))
            self._measure(around, of_run(summary, handed_on=goes_on))
        if not goes_on:
            await alert(around.topic, hole_message(summary))
        return summary

    @staticmethod
    async def _hand_on(
        event: Mapping[str, Any], target: Target, hop: int, summary: Mapping[str, Any] | None, around: Surroundings
    ) -> None:
        if around.successor is None:
            if summary is None:
                raise RunError(f"{target.uri} was not audited: {DEADLINE}")
            return
        settings = {name: value for name, value in event.items() if name in EVENT_SETTINGS}
        await around.successor.invoke(next_event(settings, target, hop, summary and summary["resume"]))
        with bound(run=summary["run"] if summary else None):
            log.info("the audit of %s is handed on to hop %d", visible(target.uri), hop + 1)

    def _measure(self, around: Surroundings, values: Mapping[str, float]) -> None:
        """The line's properties are the labels that the logs have."""
        service = self._environ.get("AUDITOR_SERVICE") or "s3-auditor"
        around.emit(emf(values, service=service, milliseconds=int(time.time() * 1000), **labels()))


async def _run(audit: Audit) -> dict[str, Any]:
    """The audit's summary; how it failed is logged while the line can still name the run."""
    try:
        return await audit.run()
    except (RunTaken, RunComplete) as other:
        log.warning("%s", other)
        raise
    except RunError as error:
        log.error("the audit failed: %s", error)
        raise


def _outcome(summary: Mapping[str, Any], stop: Stop | None) -> str:
    """Counts in a sentence. stop: what the run is handed on for, if it is."""
    coverage, findings = summary["coverage"], sum(summary["findings"].values())
    end = "complete" if summary["complete"] else f"not complete ({summary['resume']['reason']})"
    return (
        f"{end if stop is None else f'saved, {stop.reason}'}: listed {coverage['listed']}, audited"
        f" {coverage['audited']}, vanished {coverage['vanished']}, undecided {coverage['undecided']}, exposed"
        f" {summary['verdicts']['exposed']}, findings {findings}"
    )
