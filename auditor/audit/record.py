"""The end of the pipeline: look each object up in the ledger, send it to the hashing queue if it is new, judge and
count it, and write its lines to the run folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from auditor.audit.compare_with_last import LastRunComparison
from auditor.config.settings import Settings
from auditor.hashing.queue.send import Dispatcher
from auditor.model.exception import Excepted
from auditor.model.finding import Finding, Judgement, RuleUndecided
from auditor.model.json_codec import encode_line
from auditor.model.line_records import encode_finding, encode_object, routed_line, undecided_line
from auditor.model.object import AnyVersion, Evidence, ObjectRef
from auditor.model.run_lines import Recorded, Standing
from auditor.reports.rollup import RollUpBuilder
from auditor.rules.exceptions import NOTHING, Exceptions
from auditor.rules.judge import Judge
from auditor.runs.segment import Segment
from auditor.runs.tally import CALLS, Tally
from auditor.s3.gather import Gathered

if TYPE_CHECKING:
    from auditor.hashing.status import HashStatus, HashStatusFinder


class RunExceptions:
    """The exceptions for one run, which counts them in a tally.

    began: the time at which the run began, in ISO 8601 in UTC: an exception holds until the end of its last day.
    """

    def __init__(self, settings: Settings, bucket: str, began: str, tally: Tally) -> None:
        self._exceptions = Exceptions(settings.exceptions, bucket, began[:10])
        self._tally = tally

    def object(self, judgement: Judgement, failure: str = "") -> Excepted:
        """Return the names of the exceptions that cover an object, and count them. The tally must have counted the
        object.

        failure: the code if the run could not hash the object, which is counted here. That is accepted apart from the
        object's other holes.
        """
        excepted = self._exceptions.of_object(judgement)
        if failure:
            accepting = self._exceptions.of_failure(judgement.evidence.ref.key, failure)
            self._tally.fail(failure, accepted=accepting.hole is not None)
            self._tally.except_findings(accepting, ())
        if excepted is not NOTHING:
            self._tally.except_(excepted, judgement)
        return excepted

    def bucket(self, findings: Sequence[Finding]) -> Excepted:
        """Return the names of the exceptions that cover findings on the bucket, and count them."""
        excepted = self._exceptions.of_bucket(findings)
        self._tally.except_findings(excepted, findings)
        return excepted


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
        if looked is not None:
            self._count(evidence.ref, looked)
            evidence = evidence.with_digests(looked.digests)
        judgement = self._judge.object(evidence)
        if judgement.unstored:
            judgement = _without_unstored(judgement)
        if looked is None:
            return judgement, None, None
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
    lacking = [RuleUndecided(rule, "HeadObject", "NotStored") for rule in judgement.unstored]
    return replace(
        judgement,
        undecided=(*judgement.undecided, *judgement.unstored),
        unanswered=(*judgement.unanswered, *lacking),
        unstored=(),
    )


class LineWriter:
    """Writes the lines of a run, and adds them to its roll-ups.

    An object is counted and its lines are written in one step, so that each checkpoint has a tally that fits its lines.
    keeps_values: True to write the values of user metadata.
    """

    def __init__(
        self,
        segment: Segment,
        tally: Tally,
        exceptions: RunExceptions,
        rollups: RollUpBuilder,
        *,
        keeps_values: bool,
    ) -> None:
        self.segment = segment
        self.tally = tally
        self.exceptions = exceptions
        self.rollups = rollups
        self._keeps_values = keeps_values

    def bucket(self, findings: Sequence[Finding], standings: Sequence[Standing]) -> None:
        """Write the lines of findings on the bucket itself. standings: their history."""
        self.rollups.add_bucket(findings, standings)
        self.segment.write_findings(map(encode_finding, findings, repeat(None), standings))

    def object(self, recorded: Recorded, hashed: bool | None, routed: bytes | None) -> bool:
        """Write the lines of an object. Return True if the folder must be flushed next.

        hashed: True if its digests are known; None without a ledger. routed: its line if it is left to S3 Batch
        Operations.
        """
        judgement = recorded.judgement
        ref, findings = judgement.evidence.ref, judgement.findings
        undecided = undecided_line(judgement)
        if recorded.standing is not None or findings or undecided is not None:
            self.rollups.add(recorded)
        return self.segment.write(
            ref.key,
            ref.version_id,
            encode_object(judgement, hashed, self._keeps_values, recorded.standing),
            list(map(encode_finding, findings, repeat(judgement.verdict), recorded.findings)) if findings else (),
            None if undecided is None else encode_line(undecided),
            routed,
        )


RunInThread = Callable[..., Awaitable[Any]]


class Recorder:
    """Looks objects up in the ledger, judges and counts them, and writes their lines to the run folder.

    gather() passes the objects, once they are read, to record(). judge: says what is recorded. fixity, dispatcher: None
    without a ledger, or without a queue. calls: the numbers of calls of this process. io: runs a function in the thread
    of the run folder.
    """

    def __init__(
        self,
        *,
        judge: RecordJudge,
        comparison: LastRunComparison,
        lines: LineWriter,
        fixity: HashStatusFinder | None,
        dispatcher: Dispatcher | None,
        calls: Counter[str],
        io: RunInThread,
    ) -> None:
        self.tally = lines.tally
        self.lines = lines
        self._judge = judge
        self._trust = judge.trust
        self.comparison = comparison
        self._segment = lines.segment
        self._fixity = fixity
        self._dispatcher = dispatcher
        self._calls = calls
        self._earlier_calls = dict(lines.tally.calls)
        self._queued = 0
        self._trusted = 0
        self._io = io
        if dispatcher is not None:
            lines.segment.follow_unsent(partial(self._unsent, dispatcher))

    def record_bucket(self) -> None:
        """Record the findings on the bucket itself. Call this before the first object."""
        findings = self._judge.bucket()
        self.tally.add_findings(findings)
        self._note_trusted()
        excepted = self.lines.exceptions.bucket(findings)
        self.lines.bucket(findings, self.comparison.bucket(findings, excepted))

    async def record(self, batch: list[Gathered]) -> None:
        """Look up, judge, count and write a batch of objects that were read.

        The objects must be in the order of the listing.
        """
        read = [item.evidence for item in batch if item.evidence is not None]
        found: list[HashStatus | None] = [None] * len(read)
        if self._fixity is not None:
            before = self._fixity.healed
            found = await self._fixity.find(read)
            self.tally.healed += self._fixity.healed - before
        if self._dispatcher is not None:
            self._dispatcher.add(one.ref for one, looked in zip(read, found, strict=True) if looked and looked.wanted)
        self.count_calls()
        if self.comparison.needs(batch[-1].step.key):
            await self._io(self.comparison.load, batch[-1].step.key)
        following = iter(found)
        for item in batch:
            step = item.step
            if step.delete_markers:
                self.tally.delete_marker(step.delete_markers)
            if step.facts is not None:
                self.tally.unreported += step.facts.unreported
            if item.evidence is None:
                self._segment.passed(step.key)
            elif self._write(item.evidence, next(following)):
                await self._io(self._segment.flush)
        if self._dispatcher is not None:  # after the lines, which a checkpoint then names with what is not sent
            try:
                await self._dispatcher.send()
            finally:
                self._count_queued(self._dispatcher)

    def _write(self, evidence: Evidence, looked: HashStatus | None) -> bool:
        """Judge and count an object, and write its lines. Return True if the folder must be flushed next."""
        judgement, hashed, routed = self._judge.object(evidence, looked)
        self.tally.add(judgement)
        failure = "" if looked is None else looked.failure
        excepted = self.lines.exceptions.object(judgement, failure)
        recorded = self.comparison.object(judgement, excepted)
        if self._trust.number_used > self._trusted:
            self._note_trusted()
        return self.lines.object(recorded, hashed, routed)

    def _note_trusted(self) -> None:
        self._trusted = self._trust.number_used
        self.tally.trust(self._trust.used)

    async def send_rest(self) -> None:
        """Send the last objects to the hashing queue, even if they do not fill a message.

        Objects that the queue does not accept stay counted as pending.
        """
        if self._dispatcher is not None:
            try:
                await self._dispatcher.close()
            finally:
                self._count_queued(self._dispatcher)

    def _unsent(self, dispatcher: Dispatcher) -> Sequence[AnyVersion]:
        self._count_queued(dispatcher)
        return dispatcher.unsent

    def _count_queued(self, dispatcher: Dispatcher) -> None:
        """Count the objects that the queue has accepted since the last call as queued, and no longer as pending."""
        new = min(dispatcher.queued - self._queued, self.tally.hashing["pending"])
        self.tally.move("pending", "queued", new)
        self._queued += new

    def count_calls(self) -> None:
        for name in CALLS:
            self.tally.calls[name] = self._earlier_calls[name] + self._calls[name]
