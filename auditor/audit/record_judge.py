"""The judge of a run for its recorder: findings, and if an object is hashed or left to S3 Batch Operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from auditor.model.finding import Finding, Judgement, RuleUndecided
from auditor.model.line_records import routed_line
from auditor.model.object import Evidence, ObjectRef
from auditor.rules.judge import Judge
from auditor.runs.tally import Tally

if TYPE_CHECKING:
    from auditor.hashing.status import HashStatus

_HASHED: Final = frozenset({"known", "hashed_now"})

JudgedObject = tuple[Judgement, bool | None, bytes | None]
"""The record of one object: its judgement; True if its digests are known, None without a ledger; and the line of
an object that is left to S3 Batch Operations. A plain tuple, because one is made for each object.
"""


class RecordJudge:
    """Judges the bucket and the objects of a run for its Recorder. The ledger tells the state of their digests. tally:
    counts the states.
    """

    def __init__(self, judge: Judge, tally: Tally) -> None:
        self.trust = judge.trust
        self._judge = judge
        self._tally = tally

    def bucket(self) -> list[Finding]:
        """Return the findings on the bucket itself."""
        return self._judge.bucket()

    def object(self, evidence: Evidence, looked: HashStatus | None) -> JudgedObject:
        """Judge an object, and count the state of its digests. looked: that state by the ledger; None without one."""
        if looked is None:
            return _without_unstored(self._judge.object(evidence)), None, None
        self._count(evidence.ref, looked)
        judgement = _without_unstored(self._judge.object(evidence.with_digests(looked.digests)))
        return judgement, looked.state in _HASHED, routed_line(evidence.ref) if looked.routed else None

    def _count(self, ref: ObjectRef, looked: HashStatus) -> None:
        self._tally.hash(looked.state)
        if looked.left_for_cost:
            self._tally.leave(ref.storage_class, ref.size)
        if looked.routed:
            self._tally.route(ref.size)


def _without_unstored(judgement: Judgement) -> Judgement:
    """Return the judgement with each rule undecided that lacks a value which an earlier run or a report did not store.

    Whoever takes facts from these reads such a value by a call. A rule without it would count as passed.
    """
    if not judgement.unstored:
        return judgement
    lacking = [RuleUndecided(rule, "HeadObject", "NotStored") for rule in judgement.unstored]
    return replace(
        judgement,
        undecided=(*judgement.undecided, *judgement.unstored),
        unanswered=(*judgement.unanswered, *lacking),
        unstored=(),
    )
