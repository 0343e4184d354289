"""Compare the findings of the demo's audit with the planted problems, and check the counts. No call is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from auditor.cli.demo.damage import VerifiedDamage
from auditor.cli.demo.plants import Planted
from auditor.hashing.worker.counts import Counts
from auditor.model.run_lines import FindingLine, ObjectLine
from auditor.model.summary import HashingSummary, Summary
from auditor.text import visible

Pair = tuple[str | None, str]
"""An object key (None: the bucket) and a rule, or a key and a verdict."""


class PlantedRow(Struct, frozen=True):
    """A planted problem, and what the audit missed of it. missed: IDs of the rules that did not flag the problem, and
    `verdict X` if the audit did not give the object the right verdict X.
    """

    planted: Planted
    missed: tuple[str, ...]


class PlantedComparison(Struct, frozen=True):
    """The comparison of all planted problems with the findings of an audit. rows: one for each planted problem.

    clean: number of objects without a planted problem. false_alarms: (key, rule) of each finding, and (key, verdict) of
    each object, that no planted problem explains.
    """

    rows: tuple[PlantedRow, ...]
    clean: int
    false_alarms: tuple[Pair, ...]

    @property
    def problems(self) -> int:
        """Number of planted problems that the audit found with all their rules and the right verdict."""
        return sum(not row.missed for row in self.rows)

    @property
    def differences(self) -> list[str]:
        """A sentence for each missed problem and each false alarm; [] if exactly the planted problems were found."""
        missed = [f"{where(row.planted.key)}: {name} was missed" for row in self.rows for name in row.missed]
        return [*missed, *(f"{where(key)}: {name} is a false alarm" for key, name in self.false_alarms)]


def where(key: str | None) -> str:
    """Return the object key, safe to print; "the bucket" for None."""
    return "the bucket" if key is None else visible(key)


def compare(
    planted: Sequence[Planted], findings: Iterable[FindingLine], objects: Iterable[ObjectLine]
) -> PlantedComparison:
    """Compare the planted problems with the lines of one run.

    An object without a planted problem must be private and have no finding; if not, it is a false alarm.
    """
    found: set[Pair] = {(line.key, line.rule) for line in findings}
    verdicts: dict[str, str] = {line.key: str(line.verdict) for line in objects}
    wanted: set[Pair] = {(plant.key, rule) for plant in planted for rule in plant.rules}
    special = {plant.key: plant.verdict for plant in planted}
    rows = tuple(PlantedRow(plant, _missed(plant, found, verdicts)) for plant in planted)
    wrong = ((key, f"verdict {said}") for key, said in verdicts.items() if key not in special and said != "private")
    alarms = sorted((found - wanted) | set(wrong), key=lambda pair: (pair[0] or "", pair[1]))
    return PlantedComparison(rows, len(verdicts.keys() - special.keys()), tuple(alarms))


def _missed(plant: Planted, found: set[Pair], verdicts: Mapping[str, str]) -> tuple[str, ...]:
    rules = [rule for rule in plant.rules if (plant.key, rule) not in found]
    wrong = plant.key is not None and plant.verdict is not None and verdicts.get(plant.key) != plant.verdict
    return (*rules, f"verdict {plant.verdict}") if wrong else tuple(rules)


def audit_differences(summary: Summary, objects: int) -> list[str]:
    """Return a sentence for each wrong count of an audit; [] if all are right. objects: number of uploaded objects."""
    coverage = summary.coverage
    outcomes = coverage.audited + coverage.vanished + coverage.undecided
    checks = {
        f"the run {summary.run} is not complete": not summary.complete,
        f"{objects:,} objects were loaded and {coverage.listed:,} listed": coverage.listed != objects,
        f"{coverage.listed:,} objects were listed and {outcomes:,} have an outcome": coverage.listed != outcomes,
        f"{coverage.audited:,} of {objects:,} objects were audited": coverage.audited != objects,
        f"{len(summary.rules_undecided)} rules are undecided": bool(summary.rules_undecided),
    }
    return [sentence for sentence, wrong in checks.items() if wrong]


def hashing_of(summary: Summary) -> HashingSummary:
    """Return the hashing counts of an audit. Raises ValueError if it had no ledger."""
    if summary.hashing is None:
        raise ValueError("the audit had no ledger")
    return summary.hashing


def hashing_differences(audited: HashingSummary, work: Counts) -> list[str]:
    """Return a sentence for each wrong count of the hashing; [] if all are right.

    audited: counts of the audit, which sends all objects to the queue. work: the worker's counts.
    """
    objects = sum(audited.counts.values())
    checks = {
        f"{audited.queued:,} of {objects:,} objects were queued": audited.queued != objects,
        f"{audited.queued:,} objects were queued and {work.hashed:,} hashed": audited.queued != work.hashed,
        f"the worker failed at {work.failed:,} objects": work.failed > 0,
    }
    return [sentence for sentence, wrong in checks.items() if wrong]


class DemoResults(Struct, frozen=True):
    """The results of all steps of the demo: audit, comparison, worker, verification."""

    audited: Summary
    comparison: PlantedComparison
    work: Counts
    verified: VerifiedDamage

    def differences(self, objects: int) -> list[str]:
        """Return a sentence for each unexpected result; [] if there is none. objects: number of uploaded objects."""
        return [
            *audit_differences(self.audited, objects),
            *self.comparison.differences,
            *hashing_differences(hashing_of(self.audited), self.work),
            *self.verified.differences(objects),
        ]
