"""Read the events of the audit and the verify function: the targets, the settings, the work to continue, and the steps
of the state machine.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct, ValidationError, convert, field, to_builtins

from auditor.config.file import load_settings
from auditor.config.layers import Layer
from auditor.config.settings import Settings, event_settings
from auditor.errors import UsageError
from auditor.model.dates import iso_date
from auditor.model.target import Target, parse_target
from auditor.runs.paths import new_run_id, parse_run_id

EVENT_TARGET: Final = frozenset({"all_buckets", "bucket", "prefix", "start_after", "stop_at", "run", "start"})
VERIFY_TARGET: Final = frozenset({"all_buckets", "bucket", "prefix", "start_after", "stop_at", "verification"})
_OF_BUCKET: Final = ("prefix", "start_after", "stop_at", "run", "verification")
"""The fields that need a bucket beside them."""
EVERY: Final = ("*",)
"""The value of the setting `buckets` that means every bucket of the account."""
_ENVELOPE: Final = frozenset({"source", "detail-type"})
_SCHEDULES: Final = ("aws.events", "aws.scheduler")
"""Sources in the events of schedules: of EventBridge rules, and of EventBridge Scheduler."""


class Invocation(Struct, frozen=True):
    """The content of an event.

    event: the event, {} for that of a schedule. given: the settings that it has. run: ID of the run that a person
    names. start: ID of the start to continue. verification: ID of the verification to continue. None for new ones.
    origin: a text that is the same each time the event is delivered. moment: time for which a schedule sent the event;
    for other events, the present time. scheduled: True if the moment is the same each time the event is delivered.
    """

    targets: tuple[Target, ...]
    settings: Settings
    event: Mapping[str, Any]
    given: Mapping[str, Any]
    run: str | None = None
    start: str | None = None
    verification: str | None = None
    origin: str = field(default_factory=lambda: secrets.token_hex(8))
    moment: datetime = field(default_factory=lambda: datetime.now(UTC))
    scheduled: bool = False
    all_buckets: bool = False

    @property
    def start_id(self) -> str:
        """The ID of the start: that in the event, or else a new one.

        If the event of a schedule is delivered twice, the IDs are the same. If any other event is, only the last parts
        of the IDs are the same.
        """
        return self.start or new_run_id(self.moment, hashlib.sha256(self.origin.encode()).digest())

    def event_with(self, start: str) -> dict[str, Any]:
        """Return the event that continues a start. start: its ID."""
        return {**self.event, "start": start}

    def again_with(self, start: str) -> str:
        """Return event_with() as text, without the keys of a range: the state of the start has them."""
        event = self.event_with(start)
        return json.dumps({name: value for name, value in event.items() if name not in ("start_after", "stop_at")})

    def again(self, target: Target, run: str | None) -> str:
        """Return, as text without object keys, the event that a person or a script sends to continue `target`.

        run: ID of the run; None for a new run.
        """
        following = {**self.given, "bucket": target.bucket, "prefix": target.prefix, "versions": target.versions}
        return json.dumps(following if run is None else following | {"run": run})


def run_of(start: str, target: Target) -> str:
    """Return the ID of the run that a start begins of this target. start: ID of the start."""
    digest = hashlib.sha256(f"{start}\0{target.uri}\0{target.versions}".encode()).digest()
    return new_run_id(parse_run_id(start), digest)


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
    allowed, fields = event_settings(function), EVENT_TARGET if function == "audit" else VERIFY_TARGET
    if not isinstance(event, Mapping):
        raise UsageError('the event is not a JSON object: send {} or {"bucket": "my-bucket"}')
    origin, moment, scheduled = request or secrets.token_hex(8), datetime.now(UTC), False
    if event.keys() >= _ENVELOPE:
        event, sent = _of_schedule(event), event
        if (time := _time_of(sent)) is not None:  # EventBridge may start the function twice, with two request IDs
            origin, moment = json.dumps([sent["source"], sent.get("time"), sent.get("resources")]), time
            scheduled = True
    if unknown := sorted(map(str, event.keys() - allowed - fields)):
        raise UsageError(
            f"the event's field {unknown[0][:100]!r} is unknown: use {', '.join(sorted(fields | allowed))}"
        )
    given = {name: value for name, value in event.items() if name in allowed}
    layer = Layer(given, lambda name: f"the event's {name}")
    settings = load_settings(layer, environ, needed=needed, function=function, judges=function == "audit")
    everything = _is_for_all(event, settings, function)
    targets = () if everything else _targets(event, settings)
    named = {name: _id_in(event, name) for name in ("run", "start", "verification")}
    return Invocation(
        targets,
        settings,
        event,
        given,
        **named,
        origin=origin,
        moment=moment,
        scheduled=scheduled,
        all_buckets=everything,
    )


def _id_in(event: Mapping[str, Any], name: str) -> str | None:
    """Return the ID that the event has in this field; None if it has none. Raises UsageError if it is no ID."""
    found = event.get(name)
    if found is not None and not isinstance(found, str):
        raise UsageError(f"the event's {name} is no ID, which is a text like 20260102T030405Z-0a1b2c")
    if found is not None:
        parse_run_id(found)
    return found


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
        if stray := sorted(event.keys() & {*_OF_BUCKET}):
            raise UsageError(f"the event's {stray[0]} needs a bucket beside it")
        uris = tuple(target.uri for target in configured_targets(settings))
    if not uris:
        raise UsageError("no bucket to audit: set AUDITOR_BUCKETS, or name one in the event")
    return tuple(
        parse_target(
            uri,
            versions=settings.versions,
            start_after=event.get("start_after"),
            stop_at=event.get("stop_at"),
        )
        for uri in uris
    )


ACTIONS: Final = ("begin", "range", "conclude")
_MEMBERS: Final = frozenset({"action", "event", "pair", "at_once", "fruitless"})


class RangePair(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A range of a run that is to be audited. owner: number of the bucket's account, for every bucket of an account."""

    bucket: str
    run: str
    range: str
    owner: str | None = None

    def to_dict(self) -> dict[str, str]:
        """Return the members as JSON values. An owner that is not known is left out."""
        found: dict[str, str] = to_builtins(self)
        return found


class MachineStep(Struct, frozen=True, kw_only=True):
    """An event of the state machine.

    event: the event of the audit function. pair: the range to audit; None for the other actions. at_once: largest
    number of ranges that are audited at once. fruitless: number of invocations in a row, before this one, that made no
    progress in the range.
    """

    action: str
    event: Mapping[str, Any]
    pair: RangePair | None
    at_once: int
    fruitless: int


def is_step(event: object) -> bool:
    """True for an event that the state machine sends."""
    return isinstance(event, Mapping) and "action" in event


def read_step(event: Mapping[str, Any]) -> MachineStep:
    """Read an event of the state machine. Raises UsageError if it is wrong."""
    action, inner, pair = event.get("action"), event.get("event"), event.get("pair")
    if action not in ACTIONS:
        raise UsageError(f"the event's action is {str(action)[:100]!r}: give {', '.join(ACTIONS)}")
    if unknown := sorted(map(str, event.keys() - _MEMBERS)):
        raise UsageError(f"the event's field {unknown[0][:100]!r} is not allowed together with an action")
    if not isinstance(inner, Mapping):
        raise UsageError('the event of an action lacks the event of its audit: {"action": .., "event": {"bucket": ..}}')
    numbers = (event.get("at_once", 1), event.get("fruitless", 0))
    if any(type(one) is not int or one < 0 for one in numbers) or numbers[0] < 1:
        raise UsageError("the event's at_once or fruitless is not a whole number")
    if action != "begin" and "start" not in inner:
        raise UsageError(f"the event of the action {action} names no start: the action begin gives it one")
    if (action == "range") != (pair is not None):
        raise UsageError("the event's pair belongs to the action range alone, which needs it")
    try:
        found = None if pair is None else convert(pair, RangePair)
    except ValidationError as error:
        raise UsageError(f"the event's pair is wrong ({error}): give a bucket, a run and a range") from error
    return MachineStep(action=str(action), event=inner, pair=found, at_once=numbers[0], fruitless=numbers[1])
