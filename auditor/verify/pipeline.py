"""Find the outcomes of all objects that the listing or the ledger has. Many objects are read at once; their outcomes
come in key order.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.aio.budget import InFlightBudget
from auditor.aio.ordered import ItemWork, in_order
from auditor.aio.stop import Stop
from auditor.hashing.digest.result import Paused
from auditor.ledger.base import S3
from auditor.model.digest import VerifyOutcome
from auditor.s3.listing import within_limit
from auditor.s3.storage_class import ARCHIVED_CLASSES, CHARGED_CLASSES, charged
from auditor.text import visible
from auditor.verify.compare import LEDGER, Comparison, ReadRequest, cross_checked, is_damaged
from auditor.verify.due import Schedule, age_of
from auditor.verify.history import HistoryWriter, has_history
from auditor.verify.merge import Pair
from auditor.verify.outcome import Verified
from auditor.verify.read import ReadResult

log = logging.getLogger(__name__)

WINDOW: Final = 10_000
"""Largest number of outcomes that wait for the outcome of an earlier key. Outcomes wait if a large object is still
being read, for example."""

Ask = Callable[[ReadRequest], Awaitable[ReadResult | Paused]]
Absent = Callable[[Pair], Awaitable[Verified | None]]
"""A function that returns the outcome of an object that the ledger has and the listing lacks; None if there is nothing
to report."""


class ReadPolicy(Struct, frozen=True, kw_only=True):
    """Decides which listed objects a run reads: objects that are due, that are not archived, and whose reading costs
    nothing extra.

    judge: the Comparison that is asked first, and that tells if a read is needed. now: time at which the verification
    began. accept_cost: True to read objects even if their storage class charges for reads. resumed: True to read again
    what was read since `now`, because an earlier invocation may have read it without saving its outcome.
    """

    judge: Comparison
    due: Schedule
    now: datetime
    accept_cost: bool = False
    resumed: bool = False

    def late(self, request: ReadRequest) -> int:
        """Return the number of seconds by which the object would be read later than the schedule allows, if it were
        read now; 0 if it is not late.
        """
        return math.ceil(self.due.late(request.checked, datetime.now(UTC)))

    def look(self, pair: Pair) -> ReadResult | ReadRequest:
        """Return the outcome of the pair's listed object, or a request to read the object."""
        if pair.ref is None:
            raise ValueError("the object is not listed")
        found = self.judge.listed(pair.ref, pair.subject)
        if not isinstance(found, ReadRequest):
            return ReadResult(found)
        ref = found.ref
        age = age_of(found.checked, self.now) if self.resumed else None
        again = age is not None and age < 1  # the ledger's times are whole seconds
        if not again and not self.due.due(ref.key, ref.version_id, found.checked, self.now):
            return ReadResult(found.verified(found.unread))
        if ref.storage_class in ARCHIVED_CLASSES and not ref.restored:
            return ReadResult(found.verified(VerifyOutcome.ARCHIVED, storage_class=ref.storage_class))
        costs = ref.storage_class in CHARGED_CLASSES and charged(ref.storage_class, ref.size) is not None
        if costs and not self.accept_cost:
            return ReadResult(found.verified(VerifyOutcome.LEFT_FOR_COST, storage_class=ref.storage_class))
        return found


class Done(Struct, frozen=True):
    """The result for one Pair of listing and ledger.

    answer: None if the pair has only delete markers, or nothing to report. late: number of seconds by which the object
    was read later than the schedule allows; 0 if it was not late.
    """

    key: str
    answer: ReadResult | None
    delete_markers: int = 0
    late: int = 0


class Walk(Struct, eq=False):
    """Finds the outcomes of all Pairs of listing and ledger.

    ask: reads an object. absent: finds the outcome of an object that only the ledger has. notes: writes outcomes into
    the histories. permits: the budget of bytes in memory. sink: gets the results in key order, up to the first object
    whose reading was paused. weight: returns the number of bytes that an object of a given size takes from the budget.
    limit: returns True once --max-calls is reached. whole_keys: True to stop only after the last version of a key.
    window: largest number of outcomes that wait for the outcome of an earlier object. heal: heals the ledger's damaged
    rows of a key; None to leave them. paused: True once a read was paused.
    """

    policy: ReadPolicy
    ask: Ask
    absent: Absent
    notes: HistoryWriter
    permits: InFlightBudget
    stop: Stop
    sink: Callable[[Done], Awaitable[None]]
    weight: Callable[[int], int]
    limit: Callable[[], bool] = lambda: False
    whole_keys: bool = False
    window: int = WINDOW
    heal: Callable[[str], Awaitable[object]] | None = None
    paused: bool = False

    async def all(self, pairs: AsyncGenerator[list[Pair], None]) -> bool:
        """Find the outcome of each Pair, and pass it to the sink. Return True if both the listing and the ledger were
        read to their ends, and no read was paused.

        A stop takes effect between two keys. The first error cancels all reads, and is raised itself, in no exception
        group. Outcomes that were collected for the histories of keys before the error are still written to the ledger.
        """
        try:
            ended = await in_order(
                within_limit(pairs, self.stop),
                self._start,
                self._hand_on,
                self.stop,
                window=self.window,
                whole_keys=self.whole_keys,
            )
        finally:
            async with self.stop.sending():
                await self.notes.flush()
        return ended and not self.paused

    async def _start(
        self, group: asyncio.TaskGroup, pair: Pair, same_key: bool
    ) -> ItemWork[Done | Paused] | Done | None:
        if self.limit():
            self.stop.set("the limit of --max-calls was reached")
            if not same_key:
                return None
        if self.heal is not None and pair.subject is not None and pair.subject.damage:
            await self.heal(pair.key)
        if pair.absent:
            if pair.is_settled:
                return await self._absent(pair)
            return ItemWork(self.permits, 0, partial(self._absent, pair))
        if pair.ref is None:
            return Done(pair.key, None, pair.delete_markers)
        if (again := pair.listed_again()) is not None:
            await self.notes.note(again)
        found = self.policy.look(pair)
        if isinstance(found, ReadResult):
            if has_history(found.verified.outcome):
                return ItemWork(self.permits, 0, partial(self._looked, pair, found))
            found = await self._cross_checked(pair, found)
            return Done(pair.key, found, pair.delete_markers)
        return ItemWork(self.permits, self.weight(pair.ref.size), partial(self._read, pair, found))

    async def _read(self, pair: Pair, request: ReadRequest) -> Done | Paused:
        answer = await self.ask(request)
        if isinstance(answer, Paused):
            return answer
        after = await self._cross_checked(pair, answer)
        # A match against the history alone verifies no row of the ledger.
        proven = after.verified.outcome is answer.verified.outcome
        verified = await self.notes.add(after.verified, request.claims if proven else ())
        after = replace(after, verified=verified)
        return Done(pair.key, after, pair.delete_markers, self.policy.late(request))

    async def _cross_checked(self, pair: Pair, answer: ReadResult) -> ReadResult:
        """Check a mismatch against the key's history before it is reported. The ledger's row may be wrong, not the
        object.
        """
        if pair.subject is None or pair.ref is None:
            return answer
        found = answer.verified
        if found.outcome is VerifyOutcome.MISMATCH and found.detail.get("origin") in (LEDGER, S3):
            lines = await self.notes.history(pair.key)
            found = cross_checked(found, self.policy.judge.versions(pair.ref, pair.subject), lines)
        if pair.subject.damage or found.outcome is VerifyOutcome.LEDGER_FAULT:
            damage = "; ".join(pair.subject.damage) or "its row and its history differ"
            words = "the ledger's entry of %s is damaged (%s): %s"
            if found.outcome is VerifyOutcome.LEDGER_FAULT or is_damaged(pair.subject):
                log.error(words, visible(pair.key), damage, "restore it from a copy")
            else:
                log.warning(words, visible(pair.key), damage, "the key's history has the digest")
            found = replace(found, detail={**found.detail, "ledger": f"damaged: {damage}"})
        return replace(answer, verified=found)

    async def _looked(self, pair: Pair, found: ReadResult) -> Done:
        verified = await self.notes.add((await self._cross_checked(pair, found)).verified)
        return Done(pair.key, replace(found, verified=verified), pair.delete_markers)

    async def _absent(self, pair: Pair) -> Done:
        verified = await self.absent(pair)
        if verified is None:
            return Done(pair.key, None)
        if verified.outcome is not VerifyOutcome.LOST:  # a loss is noted after the summary reports it
            verified = await self.notes.add(verified)
        return Done(pair.key, ReadResult(verified), pair.delete_markers)

    async def _hand_on(self, results: list[Done | Paused]) -> None:
        for done in results:
            if isinstance(done, Paused):
                self.paused = True
            elif not self.paused:
                await self.sink(done)
