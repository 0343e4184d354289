"""The state of one start: its targets, how far each is, and the invocation that works on the start.

`starts/ID-state.json` in the store of run folders has the state, and `starts/ID.json` the ranges that the state machine
is to audit. Lambda may deliver an event twice, and sends it again after an invocation that failed or ran out of time
(Lambda Developer Guide, "How Lambda handles errors and retries with asynchronous invocation"): the state shows that the
start is made already.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Self

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from auditor.errors import RunTaken
from auditor.lambdas.event import run_of
from auditor.lambdas.lease import AFTER_DEADLINE, change_file
from auditor.model.target import Target
from auditor.runs.paths import parse_run_id, same_start
from auditor.runs.stores.base import Store

FOLDER: Final = "starts"
_STATE: Final = "-state.json"
LONGEST: Final = 86_400.0
"""Seconds for which a start waits for a bucket that another run has."""


class TargetPhase(StrEnum):
    """How far a target is."""

    WAITING = "waiting"
    BEGUN = "begun"
    """Its run has begun, and its ranges are left to the state machine."""
    ENDED = "ended"
    """Its run has ended, complete or not, and its end is measured."""
    FAILED = "failed"


class StartTarget(Target, frozen=True, kw_only=True):
    """A target of a start. run: ID of its run; None if none has begun. named: True if a person named the run. owner:
    number of the bucket's account, for every bucket of an account. sentence: why it failed, or for whom it waits.
    silent: number of invocations in which its run could not begin, because a server did not answer.
    """

    run: str | None = None
    named: bool = False
    owner: str | None = None
    phase: TargetPhase = TargetPhase.WAITING
    sentence: str = ""
    silent: int = 0

    @classmethod
    def of(cls, target: Target, *, run: str | None = None, owner: str | None = None) -> Self:
        return cls(**asdict(target), run=run, named=run is not None, owner=owner)

    @property
    def target(self) -> Target:
        """The target alone."""
        return Target(self.bucket, self.prefix, self.versions, self.start_after, self.stop_at)

    @property
    def done(self) -> bool:
        return self.phase in (TargetPhase.ENDED, TargetPhase.FAILED)


class StartState(Struct, kw_only=True):
    """The content of the file. start: ID of the start. token, until: the invocation that works on the start, and the
    end of its claim in seconds since 1970. machine: True if the state machine works on it. ended: True if its end is
    reported, so that nothing is left to do. complete: True if it has ended, and each of its runs is complete.
    """

    start: str = ""
    token: str = ""
    until: float = 0.0
    machine: bool = False
    ended: bool = False
    complete: bool = False
    targets: list[StartTarget] = field(default_factory=list)


class FunctionStart:
    """One start, in one invocation. id: its ID. targets: by their place in the event."""

    def __init__(self, store: Store, state: StartState) -> None:
        self._store = store
        self.state = state
        self.id = state.start
        self.targets = state.targets

    @property
    def several(self) -> bool:
        return len(self.targets) > 1

    @property
    def too_long(self) -> bool:
        """True if the start waits no longer for buckets that other runs have."""
        return time.time() - parse_run_id(self.id).timestamp() > LONGEST

    def in_phase(self, *phases: TargetPhase) -> list[int]:
        """Return the places of the targets that are in one of these phases."""
        return [place for place, one in enumerate(self.targets) if one.phase in phases]

    def note(self, place: int, phase: TargetPhase, *, run: str | None = None, sentence: str = "") -> None:
        """Note how far a target is, for the next save()."""
        one = self.targets[place]
        self.targets[place] = replace(one, phase=phase, run=run or one.run, sentence=sentence)

    def note_silence(self, place: int, most: int, sentence: str) -> bool:
        """Note that the run of a target could not begin, because a server did not answer: after more invocations than
        `most` the target has failed. Return True if the next invocation tries it again.
        """
        one = replace(self.targets[place], silent=self.targets[place].silent + 1, sentence=sentence)
        again = one.silent <= most
        self.targets[place] = replace(one, phase=TargetPhase.WAITING if again else TargetPhase.FAILED)
        return again

    def wanted(self, place: int) -> str:
        """Return the ID of the run that this start begins, or continues, of a target."""
        one = self.targets[place]
        return one.run or run_of(self.id, one.target)

    def save(
        self, *, free: bool = False, machine: bool | None = None, ended: bool = False, complete: bool = False
    ) -> None:
        """Write the state, unless another invocation has taken the start since. Blocks.

        free: True to end the claim of this invocation. machine: True if the state machine works on the start from now
        on; None to leave that as it is. ended: True if the end is reported. complete: True if each run is complete
        then.
        """
        state = self.state
        state.ended, state.complete = ended, complete
        if free:
            state.until = 0.0
        if machine is not None:
            state.machine = machine
        change_file(
            self._store, _path(self.id), StartState, lambda there: state if there.token in ("", state.token) else None
        )

    def write_pairs(self, pairs: Sequence[Any]) -> str:
        """Write the ranges for the state machine, as JSON values, and return the file's key in the bucket of the store.
        Blocks.
        """
        path = f"{FOLDER}/{self.id}.json"
        self._store.put(path, json.dumps(pairs).encode())
        return f"{self._store.prefix}{path}"


class StartBusyError(RunTaken):
    """Raised if another invocation works on a start. start: its ID."""

    def __init__(self, start: str, worker: str) -> None:
        super().__init__(f"{worker} works on the start {start}: this one stops")
        self.start = start


def take_start(store: Store, wanted: str, seconds: float, *, fixed: bool, machine: bool = False) -> FunctionStart:
    """Take a start for this invocation. Blocks.

    wanted: ID of the start; of a start that is not `fixed`, an earlier delivery of the event may have made the ID with
    an earlier time. seconds: time until the deadline. machine: True for a step of the state machine, whose steps
    follow each other. Raises StartBusyError if another invocation works on the start.
    """
    start = wanted if fixed else _same(store, wanted)
    state, token = StartState(start=start), secrets.token_hex(8)

    def change(there: StartState) -> StartState | None:
        nonlocal state
        state = there
        state.start = start
        if state.ended or (machine and state.machine):
            return None
        if state.machine:
            raise StartBusyError(start, "the state machine")
        if state.until > time.time() and state.token != token:
            raise StartBusyError(start, "another invocation")
        state.until = 0.0 if machine else time.time() + seconds + AFTER_DEADLINE
        state.token, state.machine = token, machine
        return state

    change_file(store, _path(start), StartState, change)
    return FunctionStart(store, state)


def _same(store: Store, wanted: str) -> str:
    """Return the ID of the start that an earlier delivery of the event has made; `wanted` if there is none.

    Lambda delivers an event again within six hours, so that it is of the same day or of the day before.
    """
    today = parse_run_id(wanted).astimezone(UTC)
    for day in (today, today - timedelta(days=1)):
        for path in store.list(f"{FOLDER}/{day:%Y%m%d}"):
            name = path.rpartition("/")[2]
            if name.endswith(_STATE) and same_start(name.removesuffix(_STATE), wanted):
                return name.removesuffix(_STATE)
    return wanted


def _path(start: str) -> str:
    parse_run_id(start)
    return f"{FOLDER}/{start}{_STATE}"


def seconds_since(start: str) -> float:
    """Return the seconds since a start or a run. start: its ID, of which the time may be a second ahead."""
    return max(0.0, (datetime.now(UTC) - parse_run_id(start)).total_seconds())
