"""Read the events of the audit and the verify function: the targets, the settings, the work to continue, and the steps
of the state machine.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, get_args

from msgspec import Meta, Struct, field

from auditor.config.file import load_settings
from auditor.config.layers import Layer
from auditor.config.settings import Settings, event_settings
from auditor.errors import UsageError
from auditor.model.dates import iso_date
from auditor.model.json_codec import JsonError, member_names, typed
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


Action = Literal["begin", "range", "conclude"]
ACTIONS: Final[tuple[str, ...]] = get_args(Action)


class RangePair(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A range of a run that is to be audited. owner: number of the bucket's account, for every bucket of an account."""

    bucket: str
    run: str
    range: str
    owner: str | None = None


class MachineStep(Struct, frozen=True, kw_only=True):
    """An event of the state machine.

    event: the event of the audit function. pair: the range to audit; None for the other actions. at_once: largest
    number of ranges that are audited at once. fruitless: number of invocations in a row, before this one, that made no
    progress in the range.
    """

    action: Action
    event: dict[str, Any]
    pair: RangePair | None = None
    at_once: Annotated[int, Meta(ge=1)] = 1
    fruitless: Annotated[int, Meta(ge=0)] = 0


class _EventFields(Struct, frozen=True):
    """The fields of an event that are no settings: its target, and the work to continue."""

    all_buckets: bool | None = None
    bucket: str | None = None
    prefix: str | None = None
    start_after: str | None = None
    stop_at: str | None = None
    run: str | None = None
    start: str | None = None
    verification: str | None = None


class Invocation(Struct, frozen=True):
    """The content of an event.

    targets: () for every bucket of the account. event: the event, {} for that of a schedule. given: the settings that
    it has. run: ID of the run that a person names. start: ID of the start to continue. verification: ID of the
    verification to continue. None for new ones. origin: a text that is the same each time the event is delivered.
    moment: time for which a schedule sent the event; for other events, the present time. scheduled: True if the moment
    is the same each time the event is delivered. step: of the state machine, whose event this is; None for others.
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
    step: MachineStep | None = None

    @property
    def of_machine(self) -> bool:
        """True if the state machine sends the event: again, if another invocation works on the same."""
        return self.step is not None or self.verification is not None

    @property
    def all_buckets(self) -> bool:
        """True if the event is for every bucket of the account."""
        return not self.targets

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

    def failure(self, error: object, target: Target, run: str | None, start: str) -> str:
        """Return an error's text with the target, the run if there is one, and the event that continues or restarts it.

        start: ID of the start, which has the keys of a range.
        """
        again = self.again(target, run) if target.whole else self.again_with(start)
        if run is None:
            return f"{target.uri}: {error}; start again with the event {again}"
        return f"{target.uri}, run {run}: {error}; the next start resumes it, or the event {again}"


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

    `{}` and the events of schedules mean all configured buckets, `{"bucket": ..}` means one bucket. A step of the state
    machine has the event of its audit. function: "audit" or "verify". needed: settings that must have a value. request:
    ID of the invocation; None if there is none.
    """
    allowed, fields = event_settings(function), EVENT_TARGET if function == "audit" else VERIFY_TARGET
    if not isinstance(event, Mapping):
        raise UsageError('the event is not a JSON object: send {} or {"bucket": "my-bucket"}')
    step = read_step(event) if function == "audit" and "action" in event else None
    event = event if step is None else step.event
    sent: dict[str, Any] = {"origin": request} if request else {}
    if event.keys() >= _ENVELOPE:
        event, sent = {}, sent | _of_schedule(event)
    if unknown := sorted(map(str, event.keys() - allowed - fields)):
        raise UsageError(
            f"the event's field {unknown[0][:100]!r} is unknown: use {', '.join(sorted(fields | allowed))}"
        )
    given = {name: value for name, value in event.items() if name in allowed}
    layer = Layer(given, lambda name: f"the event's {name}")
    settings = load_settings(layer, environ, needed=needed, function=function, judges=function == "audit")
    named = _named(event)
    targets = _targets(event, named, settings, function)
    return Invocation(targets, settings, event, given, named.run, named.start, named.verification, step=step, **sent)


def _named(event: Mapping[str, Any]) -> _EventFields:
    """Return the fields of the event that are no settings. Raises UsageError for a wrong type, and for an ID that is
    none.
    """
    try:
        found = typed(_EventFields, dict(event))
    except JsonError as error:
        raise UsageError(f"the event's {error}") from error
    for name in (found.run, found.start, found.verification):
        if name is not None:
            parse_run_id(name)
    return found


def _of_schedule(envelope: Mapping[str, Any]) -> dict[str, Any]:
    """Check that a schedule has sent this event of EventBridge, which has no settings. Return the members of its
    Invocation that name the start: EventBridge may start the function twice, with two request IDs.

    Raises UsageError for other events of EventBridge.
    """
    source, kind = envelope["source"], envelope["detail-type"]
    if source not in _SCHEDULES or kind != "Scheduled Event":
        raise UsageError(
            f"the event is {f'{kind!s:.100} of {source!s:.100}'!r}: of EventBridge's events only schedules (aws.events,"
            " aws.scheduler) start this function; take the function off that rule, or send {} or"
            ' {"bucket": "my-bucket"}'
        )
    try:
        moment = iso_date(envelope["time"]).astimezone(UTC)
    except (KeyError, TypeError, ValueError, OverflowError):  # it names no time
        return {}
    origin = json.dumps([source, envelope["time"], envelope.get("resources")])
    return {"origin": origin, "moment": moment, "scheduled": True}


def configured_targets(settings: Settings) -> tuple[Target, ...]:
    """Return the whole targets that a schedule's event is for. Raises UsageError for a name that is no bucket."""
    uris = (name if ":" in name else f"s3://{name}" for name in settings.buckets)
    return tuple(parse_target(uri, versions=settings.versions) for uri in uris)


def _targets(event: Mapping[str, Any], named: _EventFields, settings: Settings, function: str) -> tuple[Target, ...]:
    """Return the target that the event names, or each configured one; () for every bucket of the account."""
    stray, judges = sorted(event.keys() & {"bucket", *_OF_BUCKET}), function == "audit"
    if named.all_buckets and not judges:
        raise UsageError("the event's all_buckets is for the audit function")
    if named.all_buckets and stray:
        raise UsageError(f"the event's all_buckets and {stray[0]} cannot be combined")
    if named.all_buckets or (judges and "bucket" not in event and settings.buckets == EVERY):
        return ()
    if "bucket" not in event:
        if stray:
            raise UsageError(f"the event's {stray[0]} needs a bucket beside it")
        if not settings.buckets:
            raise UsageError("no bucket to audit: set AUDITOR_BUCKETS, or name one in the event")
        return configured_targets(settings)
    return (_target(named, settings),)


def _target(named: _EventFields, settings: Settings) -> Target:
    """Return the target in the bucket that the event names."""
    bucket = named.bucket
    if not bucket:  # null is wrong too: an event for every bucket lacks the field
        raise UsageError("the event's bucket is empty: name one, or leave the field out to audit every bucket")
    if ":" in bucket or "/" in bucket:
        raise UsageError(
            f"the event's bucket is {bucket[:100]!r}: give the name alone, and a prefix of its keys as the event's"
            " prefix"
        )
    uri, keys = f"s3://{bucket}/{named.prefix or ''}", {"start_after": named.start_after, "stop_at": named.stop_at}
    return parse_target(uri, versions=settings.versions, **keys)


def read_step(event: Mapping[str, Any]) -> MachineStep:
    """Read an event of the state machine. Raises UsageError if it is wrong."""
    if unknown := sorted(map(str, event.keys() - member_names(MachineStep))):
        raise UsageError(f"the event's field {unknown[0][:100]!r} is not allowed together with an action")
    try:
        step = typed(MachineStep, dict(event))
    except JsonError as error:
        form = f'{{"action": "{"|".join(ACTIONS)}", "event": {{"bucket": ..}}}}'
        raise UsageError(f"the event's {error}: a step of the state machine has the form {form}") from error
    if step.action != "begin" and "start" not in step.event:
        raise UsageError(f"the event of the action {step.action} names no start: the action begin gives it one")
    if (step.action == "range") != (step.pair is not None):
        raise UsageError("the event's pair belongs to the action range alone, which needs it")
    return step
