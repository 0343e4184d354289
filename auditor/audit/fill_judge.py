"""Judge the objects of a run that is filled: with the digests, findings and routed lines that stay as they were."""

from __future__ import annotations

from collections.abc import Sequence

from auditor.audit.fill_source import FillObject, FillSource
from auditor.audit.record_judge import JudgedObject, RecordJudge
from auditor.audit.stored import StoredFindings
from auditor.hashing.status import HashStatus, unhashable
from auditor.model.finding import Finding
from auditor.model.line_records import routed_line
from auditor.model.object import Evidence, Unread
from auditor.model.run_lines import FindingLine
from auditor.rules.judge import Judge
from auditor.runs.tally import Tally


class FillRecordJudge(RecordJudge):
    """Judges the objects of a run that is filled. The ledger is not asked again.

    tally: the counts of the filled run, in which an object that is read again changes its state. source: the objects.
    kept: keeps the findings of rules that cannot judge an object again. bucket: the stored findings on the bucket
    itself.
    """

    def __init__(
        self, judge: Judge, tally: Tally, source: FillSource, kept: StoredFindings, bucket: Sequence[FindingLine]
    ) -> None:
        super().__init__(judge, tally)
        self._source = source
        self._kept = kept
        self._stored_on_bucket = list(bucket)

    def bucket(self) -> list[Finding]:
        return [*super().bucket(), *self._kept.of_bucket(self._stored_on_bucket)]

    def object(self, evidence: Evidence, looked: HashStatus | None) -> JudgedObject:
        waiting = self._source.taken(evidence.ref)
        stored = waiting.stored
        same = evidence.ref.etag == waiting.known.ref.etag and not evidence.vanished
        judgement = self._kept.added(self._judge.object(evidence), stored.findings if same else [])
        routed = stored.routed if same else None
        hashed = None if evidence.vanished else stored.line.hashed
        if hashed is not None and not same:
            hashed = False
        if stored.line.hashed is not None and evidence is not waiting.known:
            _count_again(self._tally, waiting, evidence, routed=routed is not None, same=same)
        return judgement, hashed, None if routed is None else routed_line(routed)


def _count_again(tally: Tally, waiting: FillObject, evidence: Evidence, *, routed: bool, same: bool) -> None:
    """Move an object that was read again to the state of its digests that its facts show now. same: True if its bytes
    are those of its line.
    """
    stored, known = waiting.stored, waiting.known
    before = _state(tally, known, hashed=stored.line.hashed is True, routed=stored.routed is not None)
    after = (
        None if evidence.vanished else _state(tally, evidence, hashed=same and bool(stored.line.hashed), routed=routed)
    )
    if stored.routed is not None and not routed:
        tally.route(-stored.routed.size, -1)
    if (code := _failure(tally, known)) and (evidence.vanished or unhashable(evidence) != code):
        tally.fail_no_more(code)
    if before == after:
        return
    if before == "pending":
        tally.leave_no_more(known.ref.storage_class, known.ref.size)
    tally.hash(before, -1)
    if after is not None:
        tally.hash(after)
    if sum(tally.failed.values()) > tally.hashing["pending"]:
        tally.fail_no_more(max(tally.failed))  # no line tells the code of an object whose bytes alone were refused


def _failure(tally: Tally, evidence: Evidence) -> str:
    """Return the code by which a run that hashes counts an object as failed by its HEAD; "" if it does not."""
    code = "" if isinstance(evidence.head, Unread) else unhashable(evidence)
    return code if code in tally.failed else ""


def _state(tally: Tally, evidence: Evidence, *, hashed: bool, routed: bool) -> str:
    """Return the state of an object's digests. The lines do not tell some states apart: there must be one to take."""
    if hashed:
        return "known" if tally.hashing["known"] else "hashed_now"
    if routed or (unhashable(evidence) and not _failure(tally, evidence)):
        return "unhashable"
    return "pending" if tally.hashing["pending"] or not tally.hashing["queued"] else "queued"
