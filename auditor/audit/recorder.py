"""The end of the pipeline: look each object up in the ledger, send it to the hashing queue if it is new, judge and
count it, and write its lines to the run folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

from auditor.audit.excepting import RunExceptions
from auditor.audit.record_judge import RecordJudge
from auditor.audit.standing import Standings
from auditor.hashing.queue.send import Dispatcher
from auditor.model.access import Verdict
from auditor.model.exception import ExceptionUse
from auditor.model.finding import RuleUndecided
from auditor.model.json_codec import encode_line
from auditor.model.line_records import encode_finding, encode_object, undecided_line
from auditor.model.object import AnyVersion, Evidence
from auditor.reports.highlights import Highlights
from auditor.reports.rollup import RollUpBuilder
from auditor.runs.folder import RunFolder
from auditor.runs.tally import CALLS, Tally
from auditor.s3.gather import Gathered
from auditor.verdict.trust import Trust

if TYPE_CHECKING:
    from auditor.hashing.status import HashStatus, HashStatusFinder

RunInThread = Callable[..., Awaitable[Any]]


class Recorder:
    """Looks objects up in the ledger, judges and counts them, and writes their lines to the run folder.

    gather() passes the objects, once they are read, to record(). An object is counted and written in one step, so that
    each checkpoint has a tally that fits its lines. judge: says what is recorded. trust: that of the judge. fixity,
    dispatcher: None without a ledger, or without a queue. calls: the numbers of calls of this process. io: runs a
    function in the thread of the run folder. keep_metadata: True to write the values of user metadata.
    """

    def __init__(
        self,
        *,
        judge: RecordJudge,
        trust: Trust,
        standings: Standings,
        exceptions: RunExceptions,
        folder: RunFolder,
        tally: Tally,
        fixity: HashStatusFinder | None,
        dispatcher: Dispatcher | None,
        calls: Counter[str],
        io: RunInThread,
        rollups: RollUpBuilder,
        keep_metadata: bool = False,
    ) -> None:
        self.tally = tally
        self.shown = Highlights()
        self._judge = judge
        self._trust = trust
        self.standings = standings
        self._exceptions = exceptions
        self._rollups = rollups
        self._folder = folder
        self._fixity = fixity
        self._dispatcher = dispatcher
        self._keep_metadata = keep_metadata
        self._calls = calls
        self._earlier_calls = dict(tally.calls)
        self._queued = 0
        self._trusted = 0
        self._io = io
        if dispatcher is not None:
            folder.follow_unsent(partial(self._unsent, dispatcher))

    def record_bucket(self) -> None:
        """Record the findings on the bucket itself. Call this before the first object."""
        findings = self._judge.bucket()
        self.tally.add_findings(findings)
        self._note_trusted()
        standings = self._exceptions.bucket(findings, self.standings.bucket(findings))
        self.standings.cover(findings, standings)
        self._rollups.add_bucket(findings, standings)
        self._folder.write_findings(map(encode_finding, findings, repeat(None), standings))

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
        if self.standings.needs(batch[-1].step.key):
            await self._io(self.standings.load, batch[-1].step.key)
        following = iter(found)
        for item in batch:
            self.tally.delete_marker(item.step.delete_markers)
            self.tally.unreported += item.step.unreported
            if item.evidence is None:
                self._folder.passed(item.step.key)
            elif self._write(item.evidence, next(following)):
                await self._io(self._folder.flush)
        if self._dispatcher is not None:  # after the lines, which a checkpoint then names with what is not sent
            try:
                await self._dispatcher.send()
            finally:
                self._count_queued(self._dispatcher)

    def summed_exceptions(self, undecided: Sequence[RuleUndecided]) -> tuple[int, tuple[ExceptionUse, ...]]:
        """Return the number of these undecided rules that are accepted, and all exceptions with their states."""
        return self._exceptions.summed(undecided)

    def _write(self, evidence: Evidence, looked: HashStatus | None) -> bool:
        """Judge and count an object, and write its lines. Return True if the folder must be flushed next."""
        judgement, hashed, routed = self._judge.object(evidence, looked)
        self.tally.add(judgement)
        failure = "" if looked is None else looked.failure
        recorded = self._exceptions.object(self.standings.object(judgement), failure)
        if recorded.findings:
            self.standings.cover(judgement.findings, recorded.findings)
        self._rollups.add(recorded)
        if self._trust.number_used > self._trusted:
            self._note_trusted()
        undecided = undecided_line(judgement)
        ref, verdict, findings = judgement.evidence.ref, judgement.verdict, judgement.findings
        if undecided is not None or verdict is Verdict.EXPOSED:
            self.shown.add(judgement, undecided)
        return self._folder.write(
            ref.key,
            ref.version_id,
            encode_object(judgement, hashed, self._keep_metadata, recorded.standing),
            list(map(encode_finding, findings, repeat(verdict), recorded.findings)) if findings else (),
            None if undecided is None else encode_line(undecided),
            routed,
        )

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
