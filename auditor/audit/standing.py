"""Give each finding, and each verdict that is not private, its history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from auditor.model.access import Verdict
from auditor.model.finding import Finding, Judgement
from auditor.model.run_lines import FindingLine, ObjectLine
from auditor.model.standing import Recorded, Standing

_WIDTH: Final = {verdict: width for width, verdict in enumerate(reversed(Verdict))}
"""The verdicts by how many they let in: the widest has the largest number."""


def is_open(judgement: Judgement) -> bool:
    """True if the object is there, and is not private."""
    verdict = judgement.verdict
    return verdict is not None and verdict is not Verdict.PRIVATE and not judgement.evidence.vanished


class Standings:
    """Gives findings and verdicts their history. began: the start of this run, in ISO 8601 in UTC."""

    def __init__(self, began: str) -> None:
        self._unknown = Standing(began, None)

    def bucket(self, findings: Sequence[Finding]) -> tuple[Standing, ...]:
        """Return the history of each finding on the bucket itself."""
        return (self._unknown,) * len(findings)

    def object(self, judgement: Judgement) -> Recorded:
        """Return the judgement of an object with the history of its verdict and findings."""
        standing, findings = self._unknown if is_open(judgement) else None, judgement.findings
        return Recorded(judgement, standing, (self._unknown,) * len(findings) if findings else ())


class StoredStandings:
    """Gives findings and verdicts that are judged again the history that the run's lines have.

    began: the start of the run that read the facts. What its lines do not have gets this time.
    """

    def __init__(self, began: str) -> None:
        self._began = began

    def findings(self, findings: Sequence[Finding], stored: Sequence[FindingLine]) -> tuple[Standing, ...]:
        """Return the history of each finding. stored: the finding lines of the same object, or of the bucket."""
        known = {line.fingerprint: line for line in stored}
        return tuple([self._of(known.get(finding.fingerprint)) for finding in findings])

    def object(self, judgement: Judgement, line: ObjectLine, stored: Sequence[FindingLine]) -> Recorded:
        """Return the judgement of an object with its history. line: its line. stored: the lines of its findings."""
        findings = self.findings(judgement.findings, stored)
        verdict = judgement.verdict
        if verdict is None or not is_open(judgement):
            return Recorded(judgement, None, findings)
        wide = line.verdict is not None and _WIDTH[line.verdict] >= _WIDTH[verdict]
        return Recorded(judgement, self._of(line if wide else None), findings)

    def _of(self, line: FindingLine | ObjectLine | None) -> Standing:
        if line is None:
            return Standing(self._began, None)
        return Standing(line.since or self._began, None)  # the exceptions are applied anew
