"""Write the lines of a run's findings and objects into its folder."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

from auditor.audit.excepting import RunExceptions
from auditor.model.finding import Finding
from auditor.model.json_codec import encode_line
from auditor.model.line_records import encode_finding, encode_object, undecided_line
from auditor.model.run_lines import Recorded, Standing
from auditor.reports.rollup import RollUpBuilder
from auditor.runs.folder import RunFolder
from auditor.runs.tally import Tally


class LineWriter:
    """Writes the lines of a run, and adds them to its roll-ups.

    An object is counted and its lines are written in one step, so that each checkpoint has a tally that fits its lines.
    keeps_values: True to write the values of user metadata.
    """

    def __init__(
        self,
        folder: RunFolder,
        tally: Tally,
        exceptions: RunExceptions,
        rollups: RollUpBuilder,
        *,
        keeps_values: bool,
    ) -> None:
        self.folder = folder
        self.tally = tally
        self.exceptions = exceptions
        self.rollups = rollups
        self._keeps_values = keeps_values

    def bucket(self, findings: Sequence[Finding], standings: Sequence[Standing]) -> None:
        """Write the lines of findings on the bucket itself. standings: their history."""
        self.rollups.add_bucket(findings, standings)
        self.folder.write_findings(map(encode_finding, findings, repeat(None), standings))

    def object(self, recorded: Recorded, hashed: bool | None, routed: bytes | None) -> bool:
        """Write the lines of an object. Return True if the folder must be flushed next.

        hashed: True if its digests are known; None without a ledger. routed: its line if it is left to S3 Batch
        Operations.
        """
        judgement = recorded.judgement
        self.rollups.add(recorded)
        undecided = undecided_line(judgement)
        ref, verdict, findings = judgement.evidence.ref, judgement.verdict, judgement.findings
        return self.folder.write(
            ref.key,
            ref.version_id,
            encode_object(judgement, hashed, self._keeps_values, recorded.standing),
            list(map(encode_finding, findings, repeat(verdict), recorded.findings)) if findings else (),
            None if undecided is None else encode_line(undecided),
            routed,
        )
