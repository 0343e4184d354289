"""The audit as a function: a schedule's or a person's event in, summaries out; settings: event, environment, file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from auditor.config import load
from auditor.errors import RunError, UsageError
from auditor.gather import Stop
from auditor.pipeline import Audit
from auditor.places import open_places
from auditor.settings import PARSERS, Layer, Settings, environment_layer, resolve
from auditor.target import Target, parse_target

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

MARGIN_SECONDS: Final = 45.0
MARGIN_SHARE: Final = 0.25
"""Listing stops this long before the deadline, or a quarter of the time left at the start where that is less."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One event, read. run: the run that goes on; hop: how often it was handed on."""

    targets: tuple[Target, ...]
    settings: Settings
    run: str | None
    hop: int


def read_event(event: Mapping[str, Any], environ: Mapping[str, str]) -> Invocation:
    """`{}` or an EventBridge envelope: every configured bucket; `{"bucket": ..}`: that one. Raises UsageError."""
    if not isinstance(event, Mapping):
        raise UsageError('the event is not a JSON object: send {} or {"bucket": "my-bucket"}')
    if event.keys() >= _ENVELOPE:
        event = {}
    if unknown := sorted(map(str, event.keys() - EVENT_SETTINGS - EVENT_TARGET)):
        raise UsageError(
            f"the event's field {unknown[0][:100]!r} is unknown: use {', '.join(sorted(EVENT_TARGET | EVENT_SETTINGS))}"
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
    if event.get("bucket"):
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


class AuditService:
    """Lives as long as its process."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ

    async def handle(self, event: Mapping[str, Any], seconds_left: float) -> dict[str, Any]:
        """`{"runs": [SUMMARY, ..]}`, one for each target. Raises AuditorError for what cannot be run: a target that
        fails, or that the deadline comes before, keeps no other from its audit, and is raised at the end.

        seconds_left: until the function's deadline. Short of it the run stops listing, finishes what is in flight and
        saves its parts; its summary then says how to go on.
        """
        invocation = read_event(event, self._environ)
        stop = Stop()
        margin = min(MARGIN_SECONDS, seconds_left * MARGIN_SHARE)
        timer = asyncio.get_running_loop().call_later(seconds_left - margin, stop.set, "the deadline is near")
        try:
            return {"runs": await self._audit(invocation, stop)}
        finally:
            timer.cancel()

    async def _audit(self, invocation: Invocation, stop: Stop) -> list[dict[str, Any]]:
        settings = invocation.settings
        summaries: list[dict[str, Any]] = []
        failures: list[RunError] = []
        async with open_places(settings, invocation.targets) as places:
            for target in invocation.targets:
                if stop:
                    failures.append(RunError(f"{target.uri} was not audited: {stop.reason}"))
                    continue
                try:
                    audit = Audit(target, settings, places, stop, run_id=invocation.run, hop=invocation.hop)
                    summaries.append(await audit.run())
                except RunError as error:
                    failures.append(error)
        if len(failures) > 1:
            raise RunError("; ".join(map(str, failures)))
        if failures:
            raise failures[0]
        return summaries
