"""Count the results of an audit. The run's checkpoint saves the counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from auditor.model.finding import Finding, Judgement, Severity, Verdict
from auditor.model.object import Outcome
from auditor.model.summary import HASHING, Amount, HashingSummary
from auditor.runs.counters import Counters

COVERAGE: Final = ("listed", "audited", "vanished", "undecided", "delete_markers")
CALLS: Final = ("list", "head", "acl", "retried", "throttled")
REASONS: Final = 100
"""Number of pairs of action and error code that are counted separately; the rest counts as OTHER. The number needs a
bound, because a server may invent any codes."""
OTHER: Final = "other other"


@dataclass(slots=True)
class Tally(Counters):
    """The counts of an audit so far. Call add() for each judged object.

    Counts never fall, except by move() and go_back_to().
    """

    LATER = frozenset({"left_bytes", "left_objects", "routed"})

    accepted: int = 0
    calls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CALLS, 0))
    coverage: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COVERAGE, 0))
    findings: dict[str, int] = field(default_factory=lambda: {severity.value: 0 for severity in Severity})
    hashing: dict[str, int] = field(default_factory=lambda: dict.fromkeys(HASHING, 0))
    left_bytes: dict[str, int] = field(default_factory=dict)
    left_objects: dict[str, int] = field(default_factory=dict)
    routed: dict[str, int] = field(default_factory=lambda: {"objects": 0, "bytes": 0})
    rules: dict[str, int] = field(default_factory=dict)
    unread: dict[str, int] = field(default_factory=dict)
    verdicts: dict[str, int] = field(default_factory=lambda: {verdict.value: 0 for verdict in Verdict})

    def add(self, judgement: Judgement) -> None:
        """Count one listed object: its outcome, verdict and findings, and its facts that could not be read."""
        evidence = judgement.evidence
        outcome = evidence.outcome
        self.coverage["listed"] += 1
        self.coverage[outcome] += 1  # every outcome is in COVERAGE
        if outcome is not Outcome.VANISHED and judgement.verdict is not None:
            self.verdicts[judgement.verdict] += 1
        if outcome is Outcome.UNDECIDED:
            for fact in evidence.unread:
                reason = f"{fact.action} {fact.code}"
                if reason not in self.unread and len(self.unread) >= REASONS:
                    reason = OTHER
                self.unread[reason] = self.unread.get(reason, 0) + 1
        if judgement.findings:
            self.add_findings(judgement.findings)

    def add_findings(self, findings: Iterable[Finding]) -> None:
        """Count findings, of an object or of the bucket."""
        for finding in findings:
            self.findings[finding.severity.value] += 1
            self.rules[finding.rule] = self.rules.get(finding.rule, 0) + 1

    def delete_marker(self, number: int = 1) -> None:
        self.coverage["delete_markers"] += number

    def accept(self, number: int = 1) -> None:
        """Count undecided objects that auditor.toml accepts. They stay counted as undecided too."""
        self.accepted += number

    def hash(self, state: str, number: int = 1) -> None:
        """Count objects by the state of their digests, such as "known" or "pending".

        Each audited or undecided object has one. state: one of model.summary.HASHING.
        """
        self.hashing[state] += number

    def move(self, old: str, new: str, number: int = 1) -> None:
        """Move objects from one state of their digests to another, for example from pending to queued."""
        self.hashing[old] -= number
        self.hashing[new] += number

    def go_back_to(self, earlier: Tally) -> None:
        """Uncount the objects that were counted after the copy `earlier` was made.

        Two counts stay: the calls, and the objects that the queue took.
        """
        queued, kept = self.hashing["queued"] - earlier.hashing["queued"], earlier.copy()
        kept.calls = self.calls
        for name in self.__slots__:
            setattr(self, name, getattr(kept, name))
        self.move("pending", "queued", min(queued, self.hashing["pending"]))  # the queue takes objects in key order

    def leave(self, storage_class: str, size: int) -> None:
        """Count a pending object that is left unread because S3 charges for reads in its storage class. size: bytes."""
        self.left_objects[storage_class] = self.left_objects.get(storage_class, 0) + 1
        self.left_bytes[storage_class] = self.left_bytes.get(storage_class, 0) + size

    def route(self, size: int) -> None:
        """Count an object that the auditor cannot hash, and leaves to S3 Batch Operations. size: bytes."""
        self.routed["objects"] += 1
        self.routed["bytes"] += size

    def hashing_summary(self, algorithms: Sequence[str]) -> HashingSummary:
        """Return the counts of the hashing, for the summary. algorithms: the wanted digests."""
        return HashingSummary(
            algorithms=tuple(algorithms),
            **self.hashing,
            left_for_cost={
                name: Amount(number, self.left_bytes[name]) for name, number in sorted(self.left_objects.items())
            },
            routed=Amount(**self.routed),
        )

    def check(self, hashing: bool = False) -> None:
        """Raise ValueError if the counts do not add up.

        hashing: True to check also that each judged object has a digest state.
        """
        coverage = self.coverage
        judged = coverage["audited"] + coverage["undecided"]
        sums = {
            "listed = audited + vanished + undecided": coverage["listed"] == judged + coverage["vanished"],
            "verdicts = audited + undecided": sum(self.verdicts.values()) == judged,
            "findings by rule = findings by severity": sum(self.rules.values()) == sum(self.findings.values()),
            "accepted <= undecided": self.accepted <= coverage["undecided"],
            "hashing = audited + undecided": not hashing or sum(self.hashing.values()) == judged,
            "left for cost <= pending": sum(self.left_objects.values()) <= self.hashing["pending"],
            "classes left have their bytes": self.left_objects.keys() == self.left_bytes.keys(),
            "routed <= unhashable": self.routed["objects"] <= self.hashing["unhashable"],
        }
        if broken := [words for words, holds in sums.items() if not holds]:
            raise ValueError(f"the counts do not add up: {'; '.join(broken)}; {self.to_dict()}")
