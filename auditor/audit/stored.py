"""Read the lines of a run back, each object with the lines that belong to it, to judge the object again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from auditor.errors import OutputError
from auditor.model.finding import Finding, Judgement
from auditor.model.object import ObjectVersion
from auditor.model.run_lines import FindingLine, ObjectLine, UndecidedLine
from auditor.rules.base import Rule
from auditor.runs.parts import Part
from auditor.runs.reading import RunReader
from auditor.runs.run_results import LinesAhead
from auditor.runs.tally import Tally


class StoredObject(Struct, frozen=True):
    """The lines of one object: its own, those of its findings, and, if there are any, the undecided and routed ones."""

    line: ObjectLine
    findings: list[FindingLine]
    undecided: UndecidedLine | None = None
    routed: ObjectVersion | None = None


class StoredPart:
    """Reads one part of a run. files: the files of the part by their kind. All methods block.

    Call bucket_findings() first where the part has findings on the bucket. Raises OutputError for a damaged part.
    """

    def __init__(self, run: RunReader, number: int, files: Mapping[str, Part]) -> None:
        self._run = run
        self._number = number
        self._objects = files.get("objects")
        self._findings = LinesAhead(run.part(FindingLine, files.get("findings")))
        self._undecided = LinesAhead(run.part(UndecidedLine, files.get("undecided")))
        self._routed = LinesAhead(run.part(ObjectVersion, files.get("routed")))

    def bucket_findings(self) -> list[FindingLine]:
        """Return the findings on the bucket itself."""
        return self._findings.take(lambda line: line.key is None)

    def objects(self) -> Iterator[StoredObject]:
        """Yield the objects in key order."""
        for line in self._run.part(ObjectLine, self._objects):
            name = line.key, line.version_id
            undecided, routed = self._undecided.of(*name), self._routed.of(*name)
            findings = self._findings.of(*name)
            yield StoredObject(line, findings, undecided[0] if undecided else None, routed[0] if routed else None)
        if not (self._findings.ended and self._undecided.ended and self._routed.ended):
            raise OutputError(f"{self._run.uri} has lines without an object in its part {self._number}: audit again")


def stored_counts(run: RunReader) -> Tally:
    """Return the counts of a run that no line has: of digests, and of delete markers.

    They are in the summary; of a run that has not ended, in its checkpoints. Raises RunDamaged.
    """
    tally, last = Tally(), run.summary
    if last is None or not last.complete:
        so_far = Tally()
        for _, state in run.checkpoints():
            so_far.include(state.tally)
        tally.coverage["delete_markers"] = so_far.coverage["delete_markers"]
        tally.hashing, tally.routed = so_far.hashing, so_far.routed
        tally.failed, tally.failed_accepted = so_far.failed, so_far.failed_accepted
        tally.left_objects, tally.left_bytes = so_far.left_objects, so_far.left_bytes
        return tally
    tally.coverage["delete_markers"] = last.coverage.delete_markers
    if (hashing := last.hashing) is not None:
        tally.hashing = hashing.counts
        tally.failed, tally.failed_accepted = dict(hashing.failed), dict(last.accepted.hashing)
        tally.routed = {"objects": hashing.routed.objects, "bytes": hashing.routed.bytes}
        tally.left_objects = {name: left.objects for name, left in hashing.left_for_cost.items()}
        tally.left_bytes = {name: left.bytes for name, left in hashing.left_for_cost.items()}
    return tally


class StoredFindings:
    """Keeps the stored findings of the rules that cannot judge an object again.

    rules: those that judge, in order. gone: IDs of rules that judged the run, and that this version does not have.
    """

    def __init__(self, rules: tuple[Rule, ...], gone: frozenset[str]) -> None:
        self._order = {rule.id: number for number, rule in enumerate(rules)}
        self._gone = gone

    def of_bucket(self, stored: list[FindingLine]) -> list[Finding]:
        """Return the stored findings on the bucket that no rule of this version can make."""
        return [finding_of(line) for line in stored if line.rule in self._gone]

    def added(self, judgement: Judgement, stored: list[FindingLine]) -> Judgement:
        """Return the judgement with the stored findings of the rules that could not judge the object again."""
        kept = self._gone.union(judgement.unstored)
        if not kept:
            return judgement
        findings = [*judgement.findings, *(finding_of(line) for line in stored if line.rule in kept)]
        findings.sort(key=lambda finding: self._order.get(finding.rule, len(self._order)))
        return replace(judgement, findings=tuple(findings))


def finding_of(line: FindingLine) -> Finding:
    """Return the finding of a line."""
    return Finding(
        line.fingerprint,
        line.rule,
        line.severity,
        line.key,
        line.version_id,
        line.grantee,
        line.permission,
        line.message,
    )
