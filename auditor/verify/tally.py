"""Count the outcomes of a verification, for its summary and its checkpoint."""

from __future__ import annotations

from collections import Counter

from msgspec import field

from auditor.model.digest import VerifyOutcome
from auditor.model.object import Whole
from auditor.runs.tally import Counters
from auditor.verify.outcome import LEFT
from auditor.verify.read import ReadResult


class VerifyTally(Counters):
    """The counts of a verification so far. The counts of earlier invocations are included."""

    listed: Whole = 0
    ledger_only: Whole = 0
    """Number of objects that the ledger has and the listing lacks."""
    delete_markers: Whole = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    """Number of objects by outcome; the sum is listed + ledger_only."""
    unreadable: Counter[str] = field(default_factory=Counter)
    """Number of unreadable objects by error code."""
    accepted: Counter[str] = field(default_factory=Counter)
    """Number of objects that were due and not read, and that auditor.toml accepts, by reason (Verified.unread)."""
    left: dict[str, tuple[Whole, Whole]] = field(default_factory=dict)
    """Objects and bytes that were not read because reading them costs extra, by storage class."""
    read_objects: Whole = 0
    """Number of objects that were read to their ends."""
    read_bytes: Whole = 0
    recorded: Whole = 0
    """Number of objects whose digests are new in the ledger."""
    healed: Whole = 0
    """Number of damaged rows of the ledger that were written anew."""
    late_objects: Whole = 0
    """Number of objects that were read when their age exceeded the schedule's limit."""
    late_seconds: Whole = 0
    """The largest number of seconds by which the age of a read object exceeded the limit."""

    @property
    def unread(self) -> Counter[str]:
        """Number of objects that were due and not read, by reason (Verified.unread)."""
        return self.unreadable + Counter({name.value: self.outcomes[name.value] for name in LEFT})

    def add(self, answer: ReadResult, late: int = 0, *, accepted: bool = False) -> None:
        """Count the result of one object.

        late: number of seconds by which the object was read too late. accepted: True if auditor.toml accepts that the
        object was not read.
        """
        verified = answer.verified
        if accepted and verified.unread is not None:
            self.accepted[verified.unread] += 1
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
        self.late_objects += late > 0
        self.late_seconds = max(self.late_seconds, late)

    def check(self) -> None:
        """Raise ValueError if the counts do not add up, or name no outcome, as those of a damaged checkpoint may."""
        for name in self.outcomes:
            VerifyOutcome(name)
        if self.outcomes.total() != self.listed + self.ledger_only:
            raise ValueError("the outcomes are not those of all objects")
