"""Give the findings and verdicts of a run that is judged again the history that its lines have."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.audit.standing import is_open
from auditor.model.finding import Finding, Judgement
from auditor.model.run_lines import WIDTH, FindingLine, ObjectLine, Recorded, Standing


class StoredStandings:
    """Gives a run that is judged again the history of its findings and verdicts, as the lines of the run have it.

    began: the start of the run that read the facts. A finding or verdict that the lines do not have gets this time.
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
        wide = line.verdict is not None and WIDTH[line.verdict] >= WIDTH[verdict]
        return Recorded(judgement, self._of(line if wide else None), findings)

    def _of(self, line: FindingLine | ObjectLine | None) -> Standing:
        if line is None:
            return Standing(self._began, None)
        return Standing(line.since or self._began, None)  # the exceptions are applied anew
