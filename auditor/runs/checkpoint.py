"""The checkpoint of a run: how far it is, saved in its run folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from auditor.errors import OutputError
from auditor.model.finding import RuleUndecided
from auditor.runs.paths import UNDIVIDED, checkpoint_name, run_path
from auditor.runs.stores.base import Store

_ON_DISK: Final = {"selection": "asked", "skipped_parts": "void"}
"""Fields that have another name in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint: the parts below next_part hold every object up to start_after (None: none yet).

    selection: what the run asks of each object; another selection may not continue the run, or its counts would mix two
    audits. rules_undecided: rules that lacked a bucket fact at any time of the run. tally: as Tally.to_dict gives it,
    unchecked. skipped_parts: numbers below next_part whose parts are empty. writer: the process that writes the run, in
    a store without locks; None: nobody.
    """

    run: str
    target: Mapping[str, Any]
    selection: Mapping[str, Any]
    rules_undecided: Sequence[RuleUndecided]
    next_part: int
    start_after: str | None
    hop: int
    tally: Mapping[str, Any]
    skipped_parts: Sequence[int] = ()
    writer: str | None = None

    @property
    def begun(self) -> bool:
        """Some part has lines."""
        return self.next_part > len(self.skipped_parts)

    def to_json(self) -> bytes:
        value = {_ON_DISK.get(name, name): getattr(self, name) for name in self.__slots__}
        value["rules_undecided"] = [asdict(item) for item in self.rules_undecided]
        for name in ("void", "writer"):  # a directory has neither
            if not value[name]:
                del value[name]
        return json.dumps({"v": 1, **value}).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Raises ValueError, KeyError or TypeError when to_json did not write `data`."""
        value = json.loads(data)
        if value.pop("v") != 1 or not all(isinstance(value[name], dict) for name in ("target", "tally")):
            raise ValueError("another format")
        if type(value["next_part"]) is not int or value["next_part"] < 0:
            raise ValueError("next_part is no count")
        if not isinstance(value["start_after"], str | None):
            raise ValueError("start_after is no key")
        skipped = value.setdefault("void", [])
        if not isinstance(skipped, list) or not all(type(number) is int for number in skipped):
            raise ValueError("void is no list of numbers")
        if not isinstance(value.get("writer"), str | None):
            raise ValueError("the writer is no name")
        value.pop("beat", None)  # earlier versions counted their writes
        value["void"] = tuple(skipped)
        value["rules_undecided"] = tuple(RuleUndecided(**item) for item in value["rules_undecided"])
        return cls(**{name: value.pop(on_disk) for name, on_disk in _ON_DISK.items()}, **value)


def load_checkpoint(store: Store, bucket: str, run_id: str, range_id: str = UNDIVIDED) -> Checkpoint | None:
    """The run's checkpoint; None where the run wrote none."""
    path = f"{run_path(bucket, run_id)}/{checkpoint_name(range_id)}"
    data = store.get(path)
    return None if data is None else parse_checkpoint(data, run_id, store.uri(path))


def parse_checkpoint(data: bytes, run_id: str, uri: str) -> Checkpoint:
    """The checkpoint in `data`; raises OutputError, which names `uri`, when it is damaged or another run's."""
    try:
        checkpoint = Checkpoint.from_json(data)
        if checkpoint.run != run_id:
            raise ValueError("another run's")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise damaged(uri, error) from error
    return checkpoint


def damaged(uri: str, error: Exception) -> OutputError:
    return OutputError(f"{uri} is damaged ({error}): start a new run")
