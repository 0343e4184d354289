"""Compare the results of the demo with the planted problems and with the damage. No call is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct

from auditor.cli.demo.bucket import BUCKET
from auditor.cli.demo.plants import PLANTED, Planted
from auditor.hashing.worker.counts import Counts
from auditor.model.access import Verdict
from auditor.model.digest import VerifyOutcome
from auditor.model.run_lines import FindingLine, ObjectLine
from auditor.model.summary import Summary
from auditor.model.target import Target
from auditor.reports.summary import holes
from auditor.text import visible
from auditor.verify.outcome import SIGNS
from auditor.verify.summary import VerifySummary

MOST_VERIFIED: Final = 300
"""Largest number of objects that the demo verifies: the first in key order, which include all damaged ones. moto's
DynamoDB is too slow for more.
"""


class Damage(Struct, frozen=True):
    """A planned damage of one planted object, after it was hashed. description: words for the user.

    change: a function that makes other bytes of the same size from the object's bytes; None: the object is deleted.
    """

    key: str
    description: str
    change: Callable[[bytes], bytes] | None = None

    @property
    def outcome(self) -> VerifyOutcome:
        """The outcome that `auditor verify` must report for the damaged object."""
        return VerifyOutcome.MISSING if self.change is None else VerifyOutcome.MISMATCH

    @property
    def line(self) -> str:
        """The line that the damaged object must have in the combined report of `auditor verify`."""
        return f"{SIGNS[self.outcome]} {visible(self.key)}"


DAMAGED: Final = (
    Damage("backups/customers.sql", "one bit is flipped", lambda body: bytes([body[0] ^ 1]) + body[1:]),
    Damage("board/minutes.txt", "its text is replaced by zeros", lambda body: bytes(len(body))),
    Damage("deploy/settings.yml", "deleted without a notification"),
)
_EXPECTED: Final = frozenset(damage.line for damage in DAMAGED)


def range_of(keys: Iterable[str]) -> Target:
    """Return the range of keys to verify: the first MOST_VERIFIED ones. keys: all object keys of the bucket."""
    return Target(BUCKET, stop_at=sorted(keys, key=str.encode)[:MOST_VERIFIED][-1])


class PlantedComparison(Struct, frozen=True):
    """The comparison of all planted problems with the lines of an audit.

    rows: each planted problem with the names of what was missed of it: the rules that did not flag it, and its verdict
    if the audit gave another one. clean: number of objects without a planted problem. false_alarms: a sentence for each
    finding, and for each verdict that is not private, that no planted problem explains.
    """

    rows: tuple[tuple[Planted, tuple[str, ...]], ...]
    clean: int
    false_alarms: tuple[str, ...]

    @property
    def found(self) -> int:
        """Number of planted problems that the audit found with all their rules and the right verdict."""
        return sum(not missed for _, missed in self.rows)


def compare(findings: Iterable[FindingLine], objects: Iterable[ObjectLine]) -> PlantedComparison:
    """Compare the planted problems with the lines of one run. Any other object must be private and have no finding."""
    verdicts = {line.key: f"verdict {line.verdict}" for line in objects}
    said = {(line.key, line.rule) for line in findings} | set(verdicts.items())
    wanted = [(plant, [(plant.key, name) for name in (*plant.rules, *_verdict(plant))]) for plant in PLANTED]
    clean = verdicts.keys() - {plant.key for plant in PLANTED}
    explained = {one for _, names in wanted for one in names} | {(key, f"verdict {Verdict.PRIVATE}") for key in clean}
    wrong = sorted(said - explained, key=lambda one: (one[0] or "", one[1]))
    return PlantedComparison(
        tuple((plant, tuple(name for key, name in names if (key, name) not in said)) for plant, names in wanted),
        len(clean),
        tuple(f"{where(key)}: {name} is a false alarm" for key, name in wrong),
    )


def _verdict(plant: Planted) -> tuple[str, ...]:
    return () if plant.verdict is None else (f"verdict {plant.verdict}",)


def where(key: str | None) -> str:
    """Return the object key, safe to print; "the bucket" for None."""
    return "the bucket" if key is None else visible(key)


class DemoResults(Struct, frozen=True):
    """The results of all steps of the demo. objects: number of uploaded objects. lines: the lines of the verification's
    combined report on objects that do not match.
    """

    objects: int
    audited: Summary
    comparison: PlantedComparison
    work: Counts
    verified: VerifySummary
    lines: frozenset[str]

    @property
    def named(self) -> int:
        """Number of damaged or lost objects that the verification named."""
        return len(self.lines & _EXPECTED)

    def differences(self) -> list[str]:
        """Return a sentence for each unexpected result; [] if there is none."""
        coverage, matching = self.audited.coverage, self.verified.outcomes[VerifyOutcome.MATCH]
        whole = min(self.objects, MOST_VERIFIED) - len(DAMAGED)
        counts = {
            f"{self.objects:,} objects were loaded and {coverage.audited:,} audited": coverage.audited != self.objects,
            f"{self.work.hashed:,} of {self.objects:,} objects were hashed": self.work.hashed != self.objects,
            f"{matching:,} of {whole:,} undamaged objects match": matching != whole,
        }
        return [
            *(f"the audit has a hole: {hole}" for hole in holes(self.audited)),
            *(f"the verification has a hole: {hole}" for hole in self.verified.holes),
            *(sentence for sentence, wrong in counts.items() if wrong),
            *(f"{where(plant.key)}: {name} was missed" for plant, missed in self.comparison.rows for name in missed),
            *self.comparison.false_alarms,
            *(f"{one.key}: {one.outcome} was missed" for one in DAMAGED if one.line not in self.lines),
            *(f"the verification says {line!r}, a false alarm" for line in sorted(self.lines - _EXPECTED)),
        ]
