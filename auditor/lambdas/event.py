"""Read the event of the audit or the verify function: the targets, the settings, and the run to continue."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct, field

from auditor.config.file import load_settings
from auditor.config.layers import Layer
from auditor.config.settings import Settings, event_settings
from auditor.errors import UsageError
from auditor.model.dates import iso_date
from auditor.model.target import Target, parse_target
from auditor.runs.paths import new_run_id

EVENT_TARGET: Final = frozenset({"all_buckets", "bucket", "prefix", "start_after", "stop_at", "run", "hop"})
_OF_BUCKET: Final = ("prefix", "start_after", "stop_at")
"""The fields that need a bucket beside them. `run` and `hop` may also stand beside all_buckets."""
EVERY: Final = ("*",)
"""The value of the setting `buckets` that means every bucket of the account."""
_ENVELOPE: Final = frozenset({"source", "detail-type"})
_SCHEDULES: Final = ("aws.events", "aws.scheduler")
"""Sources in the events of schedules: of EventBridge rules, and of EventBridge Scheduler."""


class Invocation(Struct, frozen=True):
    """The content of an event.

    given: the settings that the event has. run: ID of the run to continue; None for a new run. hop: number of earlier
    invocations for the same work. origin: a text that is the same each time the event is delivered. moment: time for
    which a schedule sent the event; for other events, the present time.
    """

    targets: tuple[Target, ...]
    settings: Settings
    given: Mapping[str, Any]
    run: str | None
    hop: int
    origin: str = field(default_factory=lambda: secrets.token_hex(8))
    moment: datetime = field(default_factory=lambda: datetime.now(UTC))
    all_buckets: bool = False

    def run_id(self, target: Target) -> str:
        """Return the ID of the run that works on this target: the run in the event, or else a new run's ID.

        If the event of a schedule is delivered twice, the IDs are the same. If any other event is, only the last parts
        of the IDs are the same.
        """
        if self.run is not None:
            return self.run
        digest = hashlib.sha256(f"{self.origin}\0{target.uri}\0{target.versions}".encode()).digest()
        return new_run_id(self.moment, digest)


def read_event(
    event: Mapping[str, Any],
    environ: Mapping[str, str],
    function: str = "audit",
    needed: Sequence[str] = (),
    request: str | None = None,
) -> Invocation:
    """Read an event. Raises UsageError if the event is wrong.

    `{}` and the events of schedules mean all configured buckets, `{"bucket": ..}` means one bucket. function: "audit"
    or "verify". needed: settings that must have a value. request: ID of the invocation; None if there is none.
    """
    allowed = event_settings(function)
    if not isinstance(event, Mapping):
        raise UsageError('the event is not a JSON object: send {} or {"bucket": "my-bucket"}')
    origin, moment = request or secrets.token_hex(8), datetime.now(UTC)
    if event.keys() >= _ENVELOPE:
        event, sent = _of_schedule(event), event
        if (time := _time_of(sent)) is not None:  # EventBridge may start the function twice, with two request IDs
            origin, moment = json.dumps([sent["source"], sent.get("time"), sent.get("resources")]), time
    if unknown := sorted(map(str, event.keys() - allowed - EVENT_TARGET)):
        raise UsageError(
            f"the event's field {unknown[0][:100]!r} is unknown: use {', '.join(sorted(EVENT_TARGET | allowed))}"
        )
    given = {name: value for name, value in event.items() if name in allowed}
    layer = Layer(given, lambda name: f"the event's {name}")
    settings = load_settings(layer, environ, needed=needed, function=function, judges=function == "audit")
    everything = _is_for_all(event, settings, function)
    targets = () if everything else _targets(event, settings)
    run, hop = event.get("run"), event.get("hop", 0)
    if run is not None and (not isinstance(run, str) or len(targets) != 1 - everything):
        raise UsageError("the event's run is a run ID, and needs its one bucket beside it")
    if type(hop) is not int or hop < 0:
        raise UsageError("the event's hop is not a whole number from 0")
    return Invocation(targets, settings, given, run, hop, origin, moment, everything)


def _is_for_all(event: Mapping[str, Any], settings: Settings, function: str) -> bool:
    """True if the event is for every bucket of the account: it says so, or it names no bucket and `buckets` is `*`.

    Raises UsageError if it says so wrongly.
    """
    said = event.get("all_buckets")
    if said not in (None, True, False) or (said and function != "audit"):
        raise UsageError("the event's all_buckets is true or left out, and is for the audit function")
    if said and (stray := sorted(event.keys() & {"bucket", *_OF_BUCKET})):
        raise UsageError(f"the event's all_buckets and {stray[0]} cannot be combined")
    return bool(said) or (function == "audit" and "bucket" not in event and settings.buckets == EVERY)


def _of_schedule(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Check that a schedule has sent this event of EventBridge. Return {}, because such an event has no settings.

    Raises UsageError for other events of EventBridge.
    """
    if event["source"] not in _SCHEDULES or event["detail-type"] != "Scheduled Event":
        name = f"{event['detail-type']!s:.100} of {event['source']!s:.100}"
        raise UsageError(
            f"the event is {name!r}: of EventBridge's events only schedules (aws.events, aws.scheduler) start this"
            ' function; take the function off that rule, or send {} or {"bucket": "my-bucket"}'
        )
    return {}


def _time_of(envelope: Mapping[str, Any]) -> datetime | None:
    """Return the time for which a schedule has sent the event; None if the event names no time."""
    try:
        return iso_date(envelope["time"]).astimezone(UTC)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def configured_targets(settings: Settings) -> tuple[Target, ...]:
    """Return the whole targets that a schedule's event is for. Raises UsageError for a name that is no bucket."""
    uris = (name if ":" in name else f"s3://{name}" for name in settings.buckets)
    return tuple(parse_target(uri, versions=settings.versions) for uri in uris)


def _targets(event: Mapping[str, Any], settings: Settings) -> tuple[Target, ...]:
    for name in ("bucket", "prefix", "start_after", "stop_at"):
        if event.get(name) is not None and not isinstance(event[name], str):
            raise UsageError(f"the event's {name} is not a text")
    if "bucket" in event:
        if not event["bucket"]:  # null is wrong too: an event for every bucket lacks the field
            raise UsageError("the event's bucket is empty: name one, or leave the field out to audit every bucket")
        if ":" in event["bucket"] or "/" in event["bucket"]:
            raise UsageError(
                f"the event's bucket is {event['bucket'][:100]!r}: give the name alone, and a prefix of its keys as"
                " the event's prefix"
            )
        uris: tuple[str, ...] = (f"s3://{event['bucket']}/{event.get('prefix') or ''}",)
    else:
        if stray := sorted(event.keys() & (EVENT_TARGET - {"all_buckets", "bucket"})):
            raise UsageError(f"the event's {stray[0]} needs a bucket beside it")
        uris = tuple(target.uri for target in configured_targets(settings))
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
