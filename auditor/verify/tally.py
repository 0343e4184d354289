"""The counts of a verification, which the summary is made of, and which a hand-over takes along."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from auditor.verify.outcome import VerifyOutcome
from auditor.verify.read import ReadResult


@dataclass(slots=True)
class VerifyTally:
    """outcomes: one for each object listed, and for each that only the ledger has. unreadable: by code.

    left: objects and bytes of each storage class whose reading would cost. read_objects, read_bytes: what was read.
    """

    listed: int = 0
    ledger_only: int = 0
    delete_markers: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    unreadable: Counter[str] = field(default_factory=Counter)
    left: dict[str, list[int]] = field(default_factory=dict)
    read_objects: int = 0
    read_bytes: int = 0
    recorded: int = 0

    def add(self, answer: ReadResult) -> None:
        verified = answer.verified
        self.outcomes[verified.outcome.value] += 1
        if verified.listed:
            self.listed += 1
        else:
            self.ledger_only += 1
        if verified.outcome is VerifyOutcome.UNREADABLE:
            self.unreadable[verified.detail["code"]] += 1
        if verified.outcome is VerifyOutcome.LEFT_FOR_COST:
            left = self.left.setdefault(verified.detail["storage_class"], [0, 0])
            left[0] += 1
            left[1] += verified.size or 0
        if answer.bytes_read is not None:
            self.read_objects += 1
            self.read_bytes += answer.bytes_read
        self.recorded += answer.recorded

    def copy(self) -> Self:
        return self.from_dict(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        return {
            "listed": self.listed,
            "ledger_only": self.ledger_only,
            "delete_markers": self.delete_markers,
            "outcomes": dict(self.outcomes),
            "unreadable": dict(self.unreadable),
            "left": {name: list(left) for name, left in self.left.items()},
            "read_objects": self.read_objects,
            "read_bytes": self.read_bytes,
            "recorded": self.recorded,
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """Raises KeyError, TypeError or ValueError for what to_dict did not give."""
        return cls(
            listed=int(value["listed"]),
            ledger_only=int(value["ledger_only"]),
            delete_markers=int(value["delete_markers"]),
            outcomes=Counter({VerifyOutcome(name).value: int(count) for name, count in value["outcomes"].items()}),
            unreadable=Counter({str(name): int(count) for name, count in value["unreadable"].items()}),
            left={str(name): [int(objects), int(size)] for name, (objects, size) in value["left"].items()},
            read_objects=int(value["read_objects"]),
            read_bytes=int(value["read_bytes"]),
            recorded=int(value["recorded"]),
        )
