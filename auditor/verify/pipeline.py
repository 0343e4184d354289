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
from auditor.hashing.limits import BUFFER
from auditor.ledger.base import S3, KeyRecord
from auditor.model.digest import VerifyOutcome
from auditor.model.object import ObjectRef
from auditor.s3.listing import within_limit
from auditor.s3.storage_class import ARCHIVED_CLASSES, CHARGED_CLASSES, charged
from auditor.text import visible
from auditor.verify.compare import LEDGER, Comparison, ReadRequest, cross_checked, is_damaged, verified
from auditor.verify.due import Schedule, age_of
from auditor.verify.history import HistoryWriter, has_history
from auditor.verify.loss import LossFinder
from auditor.verify.merge import Pair
from auditor.verify.outcome import Verified
from auditor.verify.read import ReadResult

log = logging.getLogger(__name__)

WINDOW: Final = 10_000
"""Largest number of outcomes that wait for the outcome of an earlier key. Outcomes wait if a large object is still
being read, for example."""

Ask = Callable[[ReadRequest], Awaitable[ReadResult | Paused]]
"""A function that reads an object, and returns its outcome; Paused if a stop came in the middle of the object."""


class ReadPolicy(Struct, frozen=True):
    """Decides which listed objects a run reads: objects that are due, that are not archived, and whose reading costs
    nothing extra.

    judge: the Comparison that is asked first, and that tells if a read is needed. now: time at which the verification
    began. accept_cost: True to read objects even if their storage class charges for reads. resumed: True to read again
    what was read since `now`, because an earlier invocation may have read it without saving its outcome.
    """

    judge: Comparison
    due: Schedule
    now: datetime
    accept_cost: bool
    resumed: bool

    def late(self, request: ReadRequest) -> int:
        """Return the number of seconds by which the object would be read later than the schedule allows, if it were
        read now; 0 if it is not late.
        """
        return math.ceil(self.due.late(request.checked, datetime.now(UTC)))

    def look(self, ref: ObjectRef, subject: KeyRecord | None) -> Verified | ReadRequest:
        """Return the outcome of a listed object, or a request to read the object.

        subject: the ledger's record of the object's key; None if the ledger does not know the key.
        """
        found = self.judge.listed(ref, subject)
        if isinstance(found, Verified):
            return found
        age = age_of(found.checked, self.now) if self.resumed else None
        again = age is not None and age < 1  # the ledger's times are whole seconds
        if not again and not self.due.due(ref.key, ref.version_id, found.checked, self.now):
            return verified(ref, found.unread)
        if ref.storage_class in ARCHIVED_CLASSES and not ref.restored:
            return verified(ref, VerifyOutcome.ARCHIVED, storage_class=ref.storage_class)
        costs = ref.storage_class in CHARGED_CLASSES and charged(ref.storage_class, ref.size) is not None
        if costs and not self.accept_cost:
            return verified(ref, VerifyOutcome.LEFT_FOR_COST, storage_class=ref.storage_class)
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

    ask: reads an object. losses: finds out whether recorded bytes were overwritten. notes: writes outcomes into the
    histories. permits: the budget of bytes in memory. sink: gets the results in key order, up to the first object whose
    reading was paused. limit: returns True once --max-calls is reached. heal: heals the ledger's damaged rows of a key.
    paused: True once a read was paused.
    """

    policy: ReadPolicy
    ask: Ask
    losses: LossFinder
    notes: HistoryWriter
    permits: InFlightBudget
    stop: Stop
    sink: Callable[[Done], Awaitable[None]]
    limit: Callable[[], bool]
    heal: Callable[[str], Awaitable[object]]
    paused: bool = False

    async def all(self, pairs: AsyncGenerator[list[Pair], None], *, window: int, whole_keys: bool) -> bool:
        """Find the outcome of each Pair, and pass it to the sink. Return True if both the listing and the ledger were
        read to their ends, and no read was paused.

        window: largest number of outcomes that wait for the outcome of an earlier object. whole_keys: True to stop only
        after the last version of a key.

        A stop takes effect between two keys. The first error cancels all reads, and is raised itself, in no exception
        group. Outcomes that were collected for the histories of keys before the error are still written to the ledger.
        """
        try:
            listed = within_limit(pairs, self.stop)
            ended = await in_order(listed, self._start, self._hand_on, self.stop, window=window, whole_keys=whole_keys)
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
        if pair.subject is not None and pair.subject.damage:
            await self.heal(pair.key)
        if pair.absent:
            if pair.is_settled:
                return await self._absent(pair)
            return ItemWork(self.permits, 0, partial(self._absent, pair))
        if pair.ref is None:
            return Done(pair.key, None, pair.delete_markers)
        if (again := pair.listed_again()) is not None:
            await self.notes.note(again)
        found = self.policy.look(pair.ref, pair.subject)
        if isinstance(found, Verified):
            if has_history(found.outcome):
                return ItemWork(self.permits, 0, partial(self._looked, pair, found))
            return Done(pair.key, ReadResult(await self._cross_checked(pair, found)), pair.delete_markers)
        return ItemWork(self.permits, min(pair.ref.size, BUFFER), partial(self._read, pair, found))

    async def _read(self, pair: Pair, request: ReadRequest) -> Done | Paused:
        answer = await self.ask(request)
        if isinstance(answer, Paused):
            return answer
        found = await self._cross_checked(pair, answer.verified)
        # A match against the history alone verifies no row of the ledger.
        proven = found.outcome is answer.verified.outcome
        noted = await self.notes.add(found, request.claims if proven else ())
        return Done(pair.key, replace(answer, verified=noted), pair.delete_markers, self.policy.late(request))

    async def _cross_checked(self, pair: Pair, found: Verified) -> Verified:
        """Check a mismatch against the key's history before it is reported. The ledger's row may be wrong, not the
        object.
        """
        if pair.subject is None or pair.ref is None:
            return found
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
        return found

    async def _looked(self, pair: Pair, found: Verified) -> Done:
        noted = await self.notes.add(await self._cross_checked(pair, found))
        return Done(pair.key, ReadResult(noted), pair.delete_markers)

    async def _absent(self, pair: Pair) -> Done:
        replaced = pair.replaced_by is not None
        found = await self.losses.find(pair) if replaced else self.policy.judge.absent(pair)
        if found is None:
            return Done(pair.key, None)
        if found.outcome is not VerifyOutcome.LOST:  # a loss is noted after the summary reports it
            found = await self.notes.add(found)
        return Done(pair.key, ReadResult(found), pair.delete_markers)

    async def _hand_on(self, results: list[Done | Paused]) -> None:
        for done in results:
            if isinstance(done, Paused):
                self.paused = True
            elif not self.paused:
                await self.sink(done)
