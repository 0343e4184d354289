"""The checkpoint of a run: how far it is, saved in its run folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from auditor.errors import OutputError
from auditor.model.finding import RuleUndecided
from auditor.runs.paths import UNDIVIDED, checkpoint_name, run_path
from auditor.runs.stores.base import Store
from auditor.runs.tally import Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
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


def load_checkpoint(store: Store, bucket: str, run_id: str, range_id: str = UNDIVIDED) -> Checkpoint | None:
    """The run's checkpoint; None where none was reached."""
    path = f"{run_path(bucket, run_id)}/{checkpoint_name(range_id)}"
    data = store.get(path)
    return None if data is None else parse_checkpoint(data, run_id, store.uri(path))


def parse_checkpoint(data: bytes, run_id: str, uri: str) -> Checkpoint:
    """The checkpoint in `data`; raises OutputError naming `uri` when it is none of this run."""
    try:
        state = Checkpoint.from_json(data)
        if state.run != run_id:
            raise ValueError("another run's")
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError, RecursionError) as error:
        raise OutputError(f"{uri} is damaged ({error}): start a new run") from error
    return state
