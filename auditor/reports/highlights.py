"""Choose the objects and findings that a report names: the first exposed and undecided objects, the worst findings."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from itertools import count, islice
from typing import TYPE_CHECKING, Final

from auditor.model.access import Verdict
from auditor.model.finding import Judgement, Severity
from auditor.model.object import PUBLIC_GROUPS
from auditor.model.record import record
from auditor.model.run_lines import FindingLine, UndecidedLine

if TYPE_CHECKING:
    from auditor.reports.formats.base import RunLines  # which the functions' package lacks

FINDINGS: Final = 1_000
EXPOSED: Final = 200
UNDECIDED: Final = 200
_RANK: Final = {severity: rank for rank, severity in enumerate(Severity)}
_OPENING: Final = ("O", "B")
"""First letters of the IDs of rules about access. Among findings of one severity, those of these rules come first."""


@record()
class ExposedObject:
    """An exposed object that a report names. rules: IDs of the rules that have a finding on the object."""

    key: str
    version_id: str | None
    rules: tuple[str, ...]


class WorstFindings:
    """Keeps the `limit` worst findings: by severity, then findings on access before the others, then by key."""

    def __init__(self, limit: int = FINDINGS) -> None:
        self._limit = limit
        self._worst: list[tuple[tuple[int, bool, str, int], FindingLine]] = []
        self._serial = count()
        self._seen = 0

    def add(self, line: FindingLine) -> None:
        self._seen += 1
        other = not line.rule.startswith(_OPENING)
        # The serial number makes every entry different: Python never compares two lines, which have no order.
        order = (_RANK[line.severity], other, line.key or "", next(self._serial))
        if len(self._worst) >= self._limit:
            if not self._worst or order >= self._worst[-1][0]:
                return
            self._worst.pop()
        bisect.insort(self._worst, (order, line))

    def keeps(self, severity: Severity, rule: str) -> bool:
        """True if add() would keep the next finding of this severity and rule, in the order of the keys."""
        if len(self._worst) < self._limit:
            return True
        return bool(self._worst) and (_RANK[severity], not rule.startswith(_OPENING)) < self._worst[-1][0][:2]

    def count(self) -> None:
        """Count a finding that is not kept."""
        self._seen += 1

    def lines(self) -> list[FindingLine]:
        """Return the kept lines, the worst first."""
        return [line for _, line in self._worst]

    @property
    def more(self) -> int:
        """Number of findings that were added and are not kept."""
        return self._seen - len(self._worst)


class Highlights:
    """Collects the objects and findings that a report names, a limited number, out of all lines of a run."""

    def __init__(self) -> None:
        self.worst = WorstFindings()
        self.exposed: list[ExposedObject] = []
        self.undecided: list[UndecidedLine] = []

    def add(self, judgement: Judgement, findings: Iterable[FindingLine], undecided: UndecidedLine | None) -> None:
        """Add one judged object: its findings, and the object itself if it is exposed or undecided and the report has
        room for it. The objects have to come in key order. findings: the object's findings as lines. undecided: the
        object's line if it is undecided, else None.
        """
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
    def read(cls, run: RunLines, exposed: int) -> Highlights:
        """Collect the highlights from the lines of a run. exposed: the number of exposed objects in the run's summary.
        With this number, the reading of objects can end after the last exposed object that a report names.
        """
        shown = cls()
        opened = (line for line in run.objects() if line.verdict is Verdict.EXPOSED)
        for line in islice(opened, min(exposed, EXPOSED)):
            shown.exposed.append(ExposedObject(line.key, line.version_id, line.rules))
        shown.add_findings(run.findings())
        shown.undecided.extend(islice(run.undecided(), UNDECIDED))
        return shown


def masked(finding: FindingLine) -> bool:
    """True if the finding is about a grant that has no effect today, because something prevents the access. A report
    marks such a finding "masked today", because the finding's words alone would mislead.
    """
    if finding.grantee in PUBLIC_GROUPS:
        return finding.verdict in {Verdict.SHARED, Verdict.MASKED, Verdict.DORMANT, Verdict.PRIVATE}
    return finding.verdict is Verdict.MASKED and finding.rule.startswith(_OPENING)
