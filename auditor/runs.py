"""What a run is called, where it lies, its checkpoint, and how it is read back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self

from auditor.errors import OutputError, UsageError
from auditor.models import RuleUndecided
from auditor.parts import found_parts, part_lines
from auditor.stores import BUCKET_NAME, Store
from auditor.tally import Tally

UNDIVIDED: Final = "00000"
"""The range of a run that is one piece."""
_RUN_ID: Final = re.compile(r"([0-9]{8}T[0-9]{6}Z)-[0-9a-f]{6}")
_TIME: Final = "%Y%m%dT%H%M%SZ"


def new_run_id(now: datetime, entropy: bytes) -> str:
    """now: aware. entropy: three random bytes. IDs sort by time."""
    if len(entropy) < 3:
        raise ValueError("a run ID takes three bytes")
    return f"{now.astimezone(UTC).strftime(_TIME)}-{entropy[:3].hex()}"


def parse_run_id(text: str) -> datetime:
    """When the run began; raises UsageError for what is not a run ID."""
    match = _RUN_ID.fullmatch(text)
    try:
        if match:
            return datetime.strptime(match[1], _TIME).replace(tzinfo=UTC)
    except ValueError:  # the 30th of February
        pass
    raise UsageError(f"{text!r} is not a run ID: it is written like 20260102T030405Z-0a1b2c")


def bucket_path(bucket: str) -> str:
    """The bucket's folder in a store."""
    if not BUCKET_NAME.fullmatch(bucket):
        raise UsageError(f"{bucket!r} is not a bucket name")
    return f"bucket={bucket}"


def run_path(bucket: str, run_id: str) -> str:
    """The run's folder in a store."""
    parse_run_id(run_id)
    return f"{bucket_path(bucket)}/run={run_id}"


def state_name(range_id: str) -> str:
    return "state.json" if range_id == UNDIVIDED else f"state-{range_id}.json"


def target_name(target: Mapping[str, Any]) -> str:
    """What latest.json calls the summary's target: its prefix, and `|versions`."""
    return f"{target['prefix'] or ''}{'|versions' if target['versions'] else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A checkpoint: parts below next_part are in place and hold every object up to start_after (None: none yet).

    void: numbers below next_part that hold nothing, for another writer might have put something there. writer: who
    writes the run, where the store has no locks; None: nobody. beat: how often it was written.
    asked: what the run asks of each object; nothing else may go on with it, or its counts would speak of two audits.
    rules_undecided: those that lacked a bucket fact at any time of the run.
    """

    run: str
    target: Mapping[str, Any]
    asked: Mapping[str, Any]
    rules_undecided: Sequence[RuleUndecided]
    next_part: int
    start_after: str | None
    hop: int
    tally: Mapping[str, Any]
    void: Sequence[int] = ()
    writer: str | None = None
    beat: int = 0

    @property
    def begun(self) -> bool:
        """Some part has lines."""
        return self.next_part > len(self.void)

    @property
    def place(self) -> tuple[object, ...]:
        """How far the run is; equal for two writers of one checkpoint."""
        return self.next_part, self.start_after, self.tally, tuple(self.void)

    def to_json(self) -> bytes:
        value = {name: getattr(self, name) for name in self.__slots__}
        value["rules_undecided"] = [asdict(item) for item in self.rules_undecided]
        for name in ("void", "writer", "beat"):  # where the store locks there are none
            if not value[name]:
                del value[name]
        return json.dumps({"v": 1, **value}).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Raises ValueError, KeyError, TypeError or AssertionError when `data` is not what to_json gave."""
        value = json.loads(data)
        if value.pop("v") != 1 or not all(isinstance(value[name], dict) for name in ("target", "tally")):
            raise ValueError("another format")
        if type(value["next_part"]) is not int or value["next_part"] < 0:
            raise ValueError("next_part is no count")
        if not isinstance(value["start_after"], str | None):
            raise ValueError("start_after is no key")
        void = value.get("void", [])
        if not isinstance(void, list) or not all(type(number) is int for number in void):
            raise ValueError("void is no list of numbers")
        if not isinstance(value.get("writer"), str | None) or type(value.get("beat", 0)) is not int:
            raise ValueError("the writer is no name")
        Tally.from_dict(value["tally"]).check()
        value["rules_undecided"] = tuple(RuleUndecided(**item) for item in value["rules_undecided"])
        return cls(**value)


def load_state(store: Store, bucket: str, run_id: str, range_id: str = UNDIVIDED) -> State | None:
    """The run's checkpoint; None where none was reached."""
    path = f"{run_path(bucket, run_id)}/{state_name(range_id)}"
    data = store.get(path)
    return None if data is None else parse_state(data, run_id, store.uri(path))


def parse_state(data: bytes, run_id: str, uri: str) -> State:
    """The checkpoint in `data`; raises OutputError naming `uri` when it is none of this run."""
    try:
        state = State.from_json(data)
        if state.run != run_id:
            raise ValueError("another run's")
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError, RecursionError) as error:
        raise OutputError(f"{uri} is damaged ({error}): start a new run") from error
    return state


def update_latest_json(store: Store, bucket: str, name: str, run_id: str) -> None:
    """Make run_id the latest of the target called `name`, unless a newer one is there."""

    def change(value: dict[str, Any] | None) -> dict[str, Any] | None:
        latest = value or {}
        runs = latest.get("runs")
        runs = runs if isinstance(runs, dict) else {}
        there = runs.get(name)
        if isinstance(there, str) and _RUN_ID.fullmatch(there) and there >= run_id:
            return None
        return {**latest, "runs": {**runs, name: run_id}}

    store.update_json(f"{bucket_path(bucket)}/latest.json", change)


def last_listed(store: Store, bucket: str, name: str) -> int | None:
    """How many objects the latest complete run of the target called `name` listed; None where it cannot be told.

    Raises OutputError where latest.json may not be read: at its end the run could not name itself there.
    """
    found = store.get(f"{bucket_path(bucket)}/latest.json")
    try:
        latest = json.loads(found or b"")
        summary = json.loads(store.get(f"{run_path(bucket, latest['runs'][name])}/summary.json") or b"")
        return int(summary["coverage"]["listed"])
    except (ValueError, KeyError, TypeError, RecursionError, OutputError, UsageError):
        return None  # it only makes an estimate


def read_lines(store: Store, bucket: str, run_id: str, kind: str) -> Iterator[dict[str, Any]]:
    """The run's lines of one kind, in order. kind: one of parts.KINDS.

    A part whose objects never came into place, and that no checkpoint covers, does not count; nor does a void one.
    """
    folder = run_path(bucket, run_id)
    parts = found_parts(store, folder)
    committed = {(part.range_id, part.number) for part in parts if part.kind == "objects"}
    states: dict[str, State | None] = {}
    for part in parts:
        if part.kind != kind:
            continue
        if part.range_id not in states:
            states[part.range_id] = load_state(store, bucket, run_id, part.range_id)
        state = states[part.range_id]
        if state is not None and part.number in state.void:
            continue
        covered = state is not None and part.number < state.next_part
        if covered or (part.range_id, part.number) in committed:
            yield from part_lines(store, folder, part)
