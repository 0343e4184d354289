"""The objects and findings that a report names: first exposed objects, worst findings, first undecided objects."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from itertools import count, islice
from typing import Final

from auditor.model.finding import Judgement, Severity, Verdict
from auditor.model.object import PUBLIC_GROUPS
from auditor.model.record import record
from auditor.model.run_lines import FindingLine, UndecidedLine
from auditor.runs.reading import RunReader

FINDINGS: Final = 1_000
EXPOSED: Final = 200
UNDECIDED: Final = 200
_RANK: Final = {severity: rank for rank, severity in enumerate(Severity)}
_OPENING: Final = ("O", "B")
"""First letters of the rules about access; among findings of one severity theirs come first."""


@record()
class ExposedObject:
    """rules: IDs of the rules with a finding on it."""

    key: str
    version_id: str | None
    rules: tuple[str, ...]


class WorstFindings:
    """Keeps the `limit` worst finding lines of any number, by severity, access before all else, then key."""

    def __init__(self, limit: int = FINDINGS) -> None:
        self._limit = limit
        self._worst: list[tuple[tuple[int, bool, str, int], FindingLine]] = []
        self._serial = count()
        self._seen = 0

    def add(self, line: FindingLine) -> None:
        self._seen += 1
        other = not line.rule.startswith(_OPENING)
        # The serial number keeps the order of arrival, so that no two lines are compared.
        order = (_RANK[line.severity], other, line.key or "", next(self._serial))
        if len(self._worst) >= self._limit:
            if not self._worst or order >= self._worst[-1][0]:
                return
            self._worst.pop()
        bisect.insort(self._worst, (order, line))

    def lines(self) -> list[FindingLine]:
        """Worst first."""
        return [line for _, line in self._worst]

    @property
    def more(self) -> int:
        """Findings beyond the limit."""
        return self._seen - len(self._worst)


class Highlights:
    """Takes every line, keeps those that a report names; its memory is bounded by the limits."""

    def __init__(self) -> None:
        self.worst = WorstFindings()
        self.exposed: list[ExposedObject] = []
        self.undecided: list[UndecidedLine] = []

    def add(self, judgement: Judgement, findings: Iterable[FindingLine], undecided: UndecidedLine | None) -> None:
        """One object with its lines; objects come in key order."""
        if judgement.verdict is Verdict.EXPOSED and len(self.exposed) < EXPOSED:
            ref, rules = judgement.evidence.ref, {finding.rule for finding in judgement.findings}
            self.exposed.append(ExposedObject(ref.key, ref.version_id, tuple(sorted(rules))))
        self.add_findings(findings)
        if undecided is not None and len(self.undecided) < UNDECIDED:
            self.undecided.append(undecided)

    def add_findings(self, lines: Iterable[FindingLine]) -> None:
        for line in lines:
            self.worst.add(line)

    @classmethod
    def read(cls, run: RunReader, exposed: int) -> Highlights:
        """The highlights of the parts of a run. exposed: how many objects are exposed; the last of them that a report
        names is also the last object that is read.
        """
        shown = cls()
        opened = (line for line in run.objects() if line.verdict is Verdict.EXPOSED)
        for line in islice(opened, min(exposed, EXPOSED)):
            shown.exposed.append(ExposedObject(line.key, line.version_id, line.rules))
        shown.add_findings(run.findings())
        shown.undecided.extend(islice(run.undecided(), UNDECIDED))
        return shown


def masked(finding: FindingLine) -> bool:
    """The finding says who is granted access, but something prevents that access today: its words would mislead."""
    if finding.grantee in PUBLIC_GROUPS:
        return finding.verdict in {Verdict.SHARED, Verdict.MASKED, Verdict.PRIVATE}
    return finding.verdict is Verdict.MASKED and finding.rule.startswith(_OPENING)
