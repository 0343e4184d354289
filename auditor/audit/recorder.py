"""The end of the pipeline: look each object up in the ledger, send it to the hashing queue if it is new, judge and
count it, and write its lines to the run folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from auditor.audit.compare_with_last import LastRunComparison
from auditor.audit.line_writer import LineWriter
from auditor.audit.record_judge import RecordJudge
from auditor.hashing.queue.send import Dispatcher
from auditor.model.object import AnyVersion, Evidence
from auditor.model.reuse import NO_FACTS
from auditor.runs.tally import CALLS
from auditor.s3.gather import Gathered

if TYPE_CHECKING:
    from auditor.hashing.status import HashStatus, HashStatusFinder

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
        self._folder = lines.folder
        self._fixity = fixity
        self._dispatcher = dispatcher
        self._calls = calls
        self._earlier_calls = dict(lines.tally.calls)
        self._queued = 0
        self._trusted = 0
        self._io = io
        if dispatcher is not None:
            lines.folder.follow_unsent(partial(self._unsent, dispatcher))

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
            self.tally.delete_marker(item.step.delete_markers)
            self.tally.unreported += (item.step.facts or NO_FACTS).unreported
            if item.evidence is None:
                self._folder.passed(item.step.key)
            elif self._write(item.evidence, next(following)):
                await self._io(self._folder.flush)
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
