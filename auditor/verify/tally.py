"""The counts of a verification, for its summary and its checkpoint."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from auditor.runs.counters import Counters
from auditor.verify.outcome import VerifyOutcome
from auditor.verify.read import ReadResult


@dataclass(slots=True)
class VerifyTally(Counters):
    """outcomes: one for each listed object, and for each that only the ledger has. unreadable: by code.

    left: objects and bytes by storage class that charges for a read. read_objects, read_bytes: read to the end.
    """

    listed: int = 0
    ledger_only: int = 0
    delete_markers: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    unreadable: Counter[str] = field(default_factory=Counter)
    left: dict[str, tuple[int, int]] = field(default_factory=dict)
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
            storage_class = verified.detail["storage_class"]
            objects, size = self.left.get(storage_class, (0, 0))
            self.left[storage_class] = objects + 1, size + (verified.size or 0)
        if answer.bytes_read is not None:
            self.read_objects += 1
            self.read_bytes += answer.bytes_read
        self.recorded += answer.recorded

    def check(self) -> None:
        """Raises ValueError for a name that no outcome has."""
        for name in self.outcomes:
            VerifyOutcome(name)
