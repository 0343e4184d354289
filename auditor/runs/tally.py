"""The running counts of a run: small, cheap to copy, and kept in the checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Self

from auditor.model.finding import Finding, Judgement, Severity, Verdict
from auditor.model.object import Outcome
from auditor.model.summary import HASHING, Amount, HashingSummary

COVERAGE: Final = ("listed", "audited", "vanished", "undecided", "delete_markers")
CALLS: Final = ("list", "head", "acl", "retried", "throttled")
REASONS: Final = 100
"""Most action and code pairs that are told apart; codes come from the server, so their number must be bounded."""
OTHER: Final = "other other"
_LATER: Final = frozenset({"left_bytes", "left_objects", "routed"})
"""What checkpoints of earlier versions do not have."""


class Tally:
    """add() each judgement once. Counts only go up, but for those that move() shifts within hashing."""

    __slots__ = (
        "accepted",
        "calls",
        "coverage",
        "findings",
        "hashing",
        "left_bytes",
        "left_objects",
        "routed",
        "rules",
        "unread",
        "verdicts",
    )

    def __init__(self) -> None:
        self.coverage = dict.fromkeys(COVERAGE, 0)
        self.verdicts: dict[str, int] = {verdict.value: 0 for verdict in Verdict}
        self.findings: dict[str, int] = {severity.value: 0 for severity in Severity}
        self.hashing = dict.fromkeys(HASHING, 0)
        self.calls = dict.fromkeys(CALLS, 0)
        self.rules: dict[str, int] = {}
        self.unread: dict[str, int] = {}
        self.left_objects: dict[str, int] = {}
        self.left_bytes: dict[str, int] = {}
        self.routed = {"objects": 0, "bytes": 0}
        self.accepted = 0

    def add(self, judgement: Judgement) -> None:
        """Count one listed object, with its findings and what was unread of it."""
        evidence = judgement.evidence
        outcome = evidence.outcome
        self.coverage["listed"] += 1
        self.coverage[outcome] += 1  # a word of COVERAGE, as the verdict is a word of its dict
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
        """Findings by themselves: those of the bucket."""
        for finding in findings:
            self.findings[finding.severity.value] += 1
            self.rules[finding.rule] = self.rules.get(finding.rule, 0) + 1

    def delete_marker(self, number: int = 1) -> None:
        self.coverage["delete_markers"] += number

    def accept(self, number: int = 1) -> None:
        """Undecided objects that the configuration accepts; they stay counted as undecided."""
        self.accepted += number

    def hash(self, state: str, number: int = 1) -> None:
        """state: one of HASHING; each audited or undecided object has exactly one."""
        self.hashing[state] += number

    def move(self, old: str, new: str, number: int = 1) -> None:
        """Objects whose hashing went on, as from pending to queued."""
        self.hashing[old] -= number
        self.hashing[new] += number

    def leave(self, storage_class: str, size: int) -> None:
        """A pending object that is not read because its class is charged for it."""
        self.left_objects[storage_class] = self.left_objects.get(storage_class, 0) + 1
        self.left_bytes[storage_class] = self.left_bytes.get(storage_class, 0) + size

    def route(self, size: int) -> None:
        """An unhashable object that is left to S3 Batch Operations."""
        self.routed["objects"] += 1
        self.routed["bytes"] += size

    def hashing_summary(self, algorithms: Sequence[str]) -> HashingSummary:
        """The counts of the hashing. algorithms: those that are wanted."""
        return HashingSummary(
            algorithms=tuple(algorithms),
            **self.hashing,
            left_for_cost={
                name: Amount(number, self.left_bytes[name]) for name, number in sorted(self.left_objects.items())
            },
            routed=Amount(**self.routed),
        )

    def copy(self) -> Self:
        """As it is now, untouched by what is counted later."""
        twin = type(self).__new__(type(self))  # no __init__: this runs once an object
        twin.coverage = self.coverage.copy()
        twin.verdicts = self.verdicts.copy()
        twin.findings = self.findings.copy()
        twin.hashing = self.hashing.copy()
        twin.calls = self.calls.copy()
        twin.rules = self.rules.copy()
        twin.unread = self.unread.copy()
        twin.left_objects = self.left_objects.copy()
        twin.left_bytes = self.left_bytes.copy()
        twin.routed = self.routed.copy()
        twin.accepted = self.accepted
        return twin

    def to_dict(self) -> dict[str, Any]:
        twin = self.copy()
        return {name: getattr(twin, name) for name in self.__slots__}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Raises ValueError when `saved` is not what to_dict gave."""
        tally = cls()
        if set(saved) | _LATER != set(cls.__slots__):
            raise ValueError("a tally with other fields")
        for name, value in saved.items():
            if name == "accepted":
                tally.accepted = _count(value)
                continue
            if not isinstance(value, dict):
                raise ValueError(f"a tally whose {name} is no object")
            getattr(tally, name).update({str(key): _count(number) for key, number in value.items()})
        return tally

    def check(self, hashing: bool = False) -> None:
        """Raises ValueError when the counts do not add up. hashing: a ledger was asked, so its counts must too."""
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


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"not a count: {value!r}")
    return value
