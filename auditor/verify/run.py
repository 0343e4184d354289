"""Verify one target: open the bucket and the ledger, read, count, and write the folder."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from auditor.aio.budget import InFlightBudget
from auditor.aio.stop import Stop
from auditor.config.resources import Resources, open_bucket
from auditor.config.settings import Settings
from auditor.errors import LedgerReadOnlyError, RunStopped, UsageError
from auditor.hashing.digest.object import hash_patiently, hash_threads
from auditor.hashing.digest.options import HashOptions
from auditor.hashing.digest.result import Paused, Result
from auditor.hashing.digest.streams import connections
from auditor.hashing.limits import BYTES_IN_FLIGHT, CONCURRENCY
from auditor.hashing.queue.message import HashTask
from auditor.model.dates import seconds_in_utc
from auditor.model.digest import VerifyOutcome
from auditor.model.exception import accepts_object, accepts_rule, holes_of
from auditor.model.summary import Amount, Resume
from auditor.model.target import Target
from auditor.progress import Snapshot
from auditor.reports.phrases import read_words
from auditor.runs.paths import new_run_id, parse_run_id
from auditor.s3.calls import Caller
from auditor.s3.listing import Listed, pages
from auditor.s3.paced_reads import PacedReads
from auditor.text import visible
from auditor.verify.compare import Comparison, ReadRequest, verified
from auditor.verify.due import due_of
from auditor.verify.folder import VerifyCheckpoint, VerifyFolder
from auditor.verify.history import HistoryWriter
from auditor.verify.loss import LossFinder
from auditor.verify.merge import merged
from auditor.verify.outcome import Verified
from auditor.verify.page import Examples, verify_page
from auditor.verify.pipeline import WINDOW, Done, ReadPolicy, Walk
from auditor.verify.read import ReadResult, VerifyReader
from auditor.verify.summary import NOTHING_COMPARED, LateReads, LineSink, UnreadableCount, VerifySummary, holes_in

_LINES: Final = 1000
_LONGEST_PAUSE: Final = 15.0
_MOST_LOST: Final = 50_000
"""Largest number of losses that are kept in memory, some 25 MB. Losses are written into the histories after the summary
has reported them. If there are more losses, the first ones are written earlier."""
_LAST: Final = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
_WINDOW: Final = 1000
"""Largest number of outcomes that wait for the outcome of an earlier object, in a function. It is small, because the
next invocation reads all objects after an unfinished object again."""


class Verification:
    """The verification of one target. Call run() once.

    compared: the algorithms to compare; None for all that the ledger has. combined: the stream to which the line of
    each object is written; None for no lines. verify_id: ID of a verification that several invocations of a Lambda
    function do, so that a stop takes effect even in the middle of an object: run() continues where the state in the
    folder ends, and conclude() ends the verification. None for a new verification that this process does alone.
    """

    def __init__(
        self,
        target: Target,
        settings: Settings,
        resources: Resources,
        stop: Stop,
        *,
        compared: Collection[str] | None = None,
        combined: LineSink | None = None,
        verify_id: str | None = None,
    ) -> None:
        self._target = target
        self._settings = settings
        if resources.ledger is None:
            raise UsageError("verifying needs a ledger, and the settings name none")
        self._ledger = resources.ledger
        self._store = resources.store
        self._stop = stop
        self._compared = compared
        self._combined = combined
        self._continues = verify_id is not None
        now = datetime.now(UTC)
        self.verify_id = verify_id or new_run_id(now, os.urandom(3))
        self._folder = VerifyFolder(resources.store, target.bucket, self.verify_id)
        self._now = now
        day = parse_run_id(self.verify_id).date().isoformat()
        self._holes = holes_of(settings.exceptions, target.bucket, day)
        self._due = due_of(settings.max_age, settings.percent, settings.every)
        self._at = VerifyCheckpoint(now, target.start_after, target.start_after)
        self._waiting: list[bytes] = []
        self._of_earlier_keys = 0, 0
        """Number of lines in _waiting, and of losses in _lost, that belong to keys before the last one."""
        self._examples = Examples()
        self._notes = HistoryWriter(self._ledger, target.bucket)
        self._lost: list[Verified] = []
        self._reads: PacedReads | None = None
        self._listed = 0
        self.advanced = False
        """True if this invocation counted a further key, or read a further part of an object."""
        self._started = time.monotonic()
        self._concurrency = settings.concurrency or CONCURRENCY
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="auditor-folder")

    async def run(self) -> VerifySummary:
        """Verify the target, write the summary, and return it. If a RunError is raised, the ledger has the outcomes
        found before.
        """
        try:
            await self._io(self._begin)
            ended = await self._verify()
            summary = self._summary(ended)
            await self._io(self._end, summary)
            async with self._stop.sending():  # the next verification reports losses again that are not noted
                await self._note_losses()
            if self._notes.unnoted != summary.unnoted:  # the losses could not be noted
                summary = replace(summary, unnoted=self._notes.unnoted)
                await self._io(self._folder.put_summary, summary)
        finally:
            try:
                await self._io(self._folder.discard)
            finally:
                self._folder.release()  # also if the store does not answer
                self._thread.shutdown(wait=False)  # a store that does not answer keeps the thread for minutes
        return summary

    @property
    def fruitless(self) -> int:
        """Number of invocations in a row, up to this one, that made no progress; 0 if this one made some."""
        return self._at.fruitless

    async def conclude(self) -> None:
        """End the verification, whose summary is complete and told: run() of a later invocation raises RunComplete."""
        await asyncio.to_thread(self._folder.put_state, self._at, ended=True)

    async def _io(self, work: Callable[..., Any], *args: Any) -> Any:
        """Call a blocking function in the folder's thread, and return its result.

        Raises RunStopped if the function takes longer than a stop leaves for saving.
        """
        result = None
        async with self._stop.saving() as limit:
            result = await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)
        if limit.expired():
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise asyncio.CancelledError  # the work was cancelled before, so the folder is not to blame
            raise RunStopped(f"{self._folder.uri} did not answer before the end ({self._stop.reason})")
        return result

    def _begin(self) -> None:
        self._store.check_writable()
        if self._continues:
            self._at = self._folder.take_up(self._at)
            self._target = replace(self._target, start_after=self._at.begun_after)

    async def _verify(self) -> bool:
        settings, target = self._settings, self._target
        target = replace(target, start_after=self._at.start_after)
        begun_at = self._at.start_after
        sockets = connections(self._concurrency, settings.streams)
        opening = open_bucket(target.bucket, settings, concurrency=self._concurrency, connections=sockets)
        with hash_threads() as executor:
            async with opening as bucket:
                engine, caller = bucket.engine, bucket.caller
                permits = InFlightBudget(self._concurrency, BYTES_IN_FLIGHT)
                options = HashOptions(
                    bucket=target.bucket,
                    streams=settings.streams,
                    executor=executor,
                    memory=permits,
                    stop=self._stop.is_set if self._continues else None,
                    attempts=settings.retry_attempts,
                    sleep=_pause,
                )
                reads = self._reads = PacedReads(engine, bucket.rate)
                hash_one = partial(self._hash, reads, options)
                reader = VerifyReader(target.bucket, engine, caller, self._ledger, hash_one, settings.algorithms)
                policy = self._policy()
                walk = Walk(
                    policy=policy,
                    ask=partial(self._ask, reader),
                    losses=LossFinder(target.bucket, engine, caller, self._ledger, policy.judge.in_flight),
                    notes=self._notes,
                    permits=permits,
                    stop=self._stop,
                    sink=self._take,
                    limit=partial(self._used_up, caller, reads),
                    heal=self._heal,
                )
                ended = False
                try:
                    async with self._stop.flight() as limit:
                        records = self._ledger.subjects(target.bucket, target.prefix, target.start_after or "")
                        pairs = merged(self._counted(pages(engine, caller, target)), records, target)
                        window = _WINDOW if self._continues else WINDOW
                        ended = await walk.all(pairs, window=window, whole_keys=target.versions)
                    self._at.cut = limit.expired()
                    if self._continues and self._at.kept[1] != self._at.start_after:
                        self._drop_last_key()
                    return ended
                finally:
                    further = any(self._at.resumed.get(name) != one for name, one in self._at.paused.items())
                    self.advanced = further or self._at.kept[1] != begun_at
                    if self.advanced:
                        self._at.fruitless = 0
                    await self._io(self._folder.write, self._drained())

    async def _counted(self, listing: AsyncGenerator[list[Listed], None]) -> AsyncGenerator[list[Listed], None]:
        async with aclosing(listing):
            async for page in listing:
                self._listed += sum(step.ref is not None for step in page)
                yield page

    def _policy(self) -> ReadPolicy:
        settings, began = self._settings, self._now.timestamp()
        judge = Comparison(
            in_flight_from=_written(max(0.0, began - settings.grace)),
            in_flight_to=lambda: _written(min(time.time() + settings.grace, _LAST)),
            algorithms=self._compared,
            record=settings.record,
        )
        again = self._folder.resumed
        return ReadPolicy(judge, self._due, self._at.as_of, accept_cost=settings.accept_cost, resumed=again)

    async def _hash(self, reads: PacedReads, options: HashOptions, task: HashTask, algorithms: Sequence[str]) -> Result:
        checkpoint = self._at.resumed.get((task.key, task.version_id))
        return await hash_patiently(reads, task, algorithms, options, checkpoint)

    async def _ask(self, reader: VerifyReader, question: ReadRequest) -> ReadResult | Paused:
        answer = await reader.answer(question)
        if isinstance(answer, Paused):
            if answer.checkpoint is None:  # each invocation would read the object from its start again
                return ReadResult(verified(question.ref, VerifyOutcome.UNREADABLE, code="NoCarriedState"))
            self._at.paused[question.ref.key, question.ref.version_id] = answer.checkpoint
        return answer

    def _used_up(self, caller: Caller, reads: PacedReads) -> bool:
        most = self._settings.max_calls
        return most is not None and caller.counts["list"] + caller.counts["head"] + reads.calls >= most

    async def _take(self, done: Done) -> None:
        if done.key != self._at.start_after:  # the lines and losses of one key stay together: see _drop_last_key()
            if len(self._lost) >= _MOST_LOST:
                await self._note_losses()
            if len(self._waiting) >= _LINES:
                await self._io(self._folder.write, self._drained())
            self._of_earlier_keys = len(self._waiting), len(self._lost)
        self._at.move(done, versions=self._target.versions, accepted=self._accepts(done))
        if done.answer is None:
            return
        found = done.answer.verified
        self._examples.add(found)
        self._waiting.append(json.dumps(found.document()).encode() + b"\n")
        if self._combined is not None:
            self._combined.write(found.line() + "\n")
        if found.outcome is VerifyOutcome.LOST:
            self._lost.append(found)

    def _drop_last_key(self) -> None:
        """Leave the lines and losses of the last key, which has versions that were not read to their ends, to the next
        invocation.
        """
        lines, losses = self._of_earlier_keys
        del self._waiting[lines:], self._lost[losses:]

    async def _note_losses(self) -> None:
        """Write the losses that were reported into the keys' histories, so that the next run does not report them
        again.
        """
        losses, self._lost = self._lost, []
        for loss in losses:
            await self._notes.add(loss)
        await self._notes.flush()

    def _accepts(self, done: Done) -> bool:
        code = done.answer.verified.unread if done.answer is not None else None
        return code is not None and accepts_object(self._holes, done.key, [("GetObject", code)])

    def _drained(self) -> list[bytes]:
        lines, self._waiting = self._waiting, []
        return lines

    def _summary(self, ended: bool) -> VerifySummary:
        """Make the summary of the present counts. Later counts do not change it."""
        at, target = self._at, self._target
        tally, start_after = (at.tally, at.start_after) if ended or not self._continues else at.kept
        resume = None if ended else Resume(self.verify_id, start_after, self._stop.reason)
        may_be_empty = self._settings.allow_empty or tally.delete_markers or (target.whole and not target.prefix)
        bare = may_be_empty and not tally.outcomes.total()
        accepted = accepts_rule(self._holes, "", *NOTHING_COMPARED)
        return VerifySummary(
            run=self.verify_id,
            out=self._folder.uri,
            target=target,
            engine=self._settings.engine,
            due=self._due.words,
            complete=ended,
            listed=tally.listed,
            ledger_only=tally.ledger_only,
            delete_markers=tally.delete_markers,
            outcomes={outcome.value: tally.outcomes[outcome.value] for outcome in VerifyOutcome},
            unreadable=tuple(UnreadableCount(code, count) for code, count in tally.unreadable.most_common()),
            left_for_cost={name: Amount(*left) for name, left in sorted(tally.left.items())},
            read=Amount(tally.read_objects, tally.read_bytes),
            recorded=tally.recorded,
            healed=tally.healed,
            unnoted=self._notes.unnoted,
            late=LateReads(tally.late_objects, tally.late_seconds),
            accepted=dict(tally.accepted),
            holes=tuple(holes_in(tally, resume, accepted or bool(bare))),
            seconds=round(time.monotonic() - self._started, 3),
            resume=resume,
        )

    def _end(self, summary: VerifySummary) -> None:
        self._folder.end_part()
        if self._continues:  # before the files that another invocation may have written since
            self._folder.put_state(self._at)
        if summary.complete or not self._continues:
            self._folder.put_page(verify_page(summary, self._examples, part=self._folder.resumed))
        self._folder.put_summary(summary)  # last: it says that the verification has ended

    async def _heal(self, key: str) -> None:
        """Write the damaged rows of a key anew that its history stands for, unless the ledger is read-only."""
        with suppress(LedgerReadOnlyError):  # the record has the history's digests all the same
            self._at.tally.healed += await self._ledger.heal(self._target.bucket, [key])

    def snapshot(self) -> Snapshot:
        """Return the present counts, for the progress line on the terminal."""
        tally, seconds = self._at.tally, time.monotonic() - self._started
        read = self._reads.bytes if self._reads else 0
        bad = (f"{number:,} {name}" for name in ("mismatch", "missing") if (number := tally.outcomes[name]))
        return Snapshot(
            what=visible(self._target.uri),
            objects=tally.listed + tally.ledger_only,
            seconds=seconds,
            detail=", ".join([f"{self._listed:,} listed", *read_words(read, seconds), *bad]),
            heard=self._listed > 0,
        )


async def _pause(seconds: float) -> None:
    """Sleep for this number of seconds, or for _LONGEST_PAUSE if that is less: the pauses between retries grow."""
    await asyncio.sleep(min(seconds, _LONGEST_PAUSE))


def _written(moment: float) -> str:
    return seconds_in_utc(datetime.fromtimestamp(moment, UTC))
