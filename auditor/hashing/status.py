"""Find out for each object whether it has a digest: one in the ledger, a checksum of S3, or one that is
computed now.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any, Final, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from auditor.aio.tasks import together
from auditor.errors import CallFailed, DigestConflict, LedgerReadOnlyError
from auditor.hashing.digest.result import entry_of
from auditor.ledger.base import S3, Ask, Entry, Ledger, OrderedReader
from auditor.ledger.history import disagreed
from auditor.ledger.matching import healable_keys
from auditor.model.object import AnyVersion, DigestSources, Evidence, Head, ObjectRef, Unread
from auditor.s3.checksums import promised, s3_digests
from auditor.s3.storage_class import ARCHIVED_CLASSES, charged

State = Literal["known", "hashed_now", "queued", "unhashable", "pending"]

_DENIED: Final = frozenset({"403", "AccessDenied", "SSE-C"})
_NO_DIGESTS: Final = DigestSources()

AskHead = Callable[[ObjectRef], Coroutine[Any, Any, Evidence]]
"""A function that reads an object's HEAD, with the checksums that S3 stores."""

ListedStill = Callable[[ObjectRef], Awaitable[bool]]
"""A function that lists an object's key again: True if the same version is still listed. Raises CallFailed."""


class Routing(Struct, frozen=True):
    """Decides which objects are left to S3 Batch Operations: archived objects, and objects larger than `over` bytes.

    over: None if no object is too large.
    """

    over: int | None = None


class HashStatus(Struct, frozen=True):
    """The state of one object's digests, and the reason for this state.

    digests: the known digests by source. `digests.read` is set only if the object's bytes contradict S3's checksum or
    the ledger. left_for_cost: True if the object is pending because reading it costs extra, which the settings do not
    accept. routed: True if the object is left to S3 Batch Operations. code: why the object has no digest: `archived`,
    `SSE-C`, `left_for_cost`, `Overwritten`, `Vanished`, `ChecksumMismatch`, `DigestConflict`, `LedgerFault`, or
    S3's error code; "" if there is no reason yet. failure: the code of an object that this run was to hash, and could
    not; "" for any other.
    """

    state: State
    digests: DigestSources = _NO_DIGESTS
    left_for_cost: bool = False
    routed: bool = False
    code: str = ""
    failure: str = ""

    @property
    def wanted(self) -> bool:
        """True if the object has no digest yet, and may be read and hashed now."""
        return self.state == "pending" and not self.left_for_cost


class Hasher(Protocol):
    """Hashes the pending objects of a run, now or by way of a queue."""

    async def hash(self, refs: Sequence[ObjectRef]) -> list[HashStatus]:
        """Hash these objects, and return the status of each, in order.

        An object whose bytes contradict S3's checksum or the ledger's digest stays "pending". Its `digests.read` then
        has the digests of the bytes, and `digests.stored` has S3's checksum, if that is contradicted.
        """
        ...


class HashStatusFinder(Struct, eq=False):
    """Finds the state of each object's digests in a run: known, hashed_now, queued, unhashable or pending.

    hasher: hashes the pending objects; None to leave them pending. accept_cost: True to hash objects even if reading
    them costs extra. routing: decides which objects are left to S3 Batch Operations; None to leave none. ask_head:
    reads the HEAD of an object if the listing says that it has a checksum; None if the run has read all HEADs already.
    listed_still: tells objects that were deleted after the listing from those that are listed and cannot be read; None
    to take each for one that cannot be read.
    healed: number of damaged rows of the ledger that were written anew so far, because the keys' histories had them.
    reader: the pass over the ledger; None before the first batch.
    """

    bucket: str
    ledger: Ledger
    algorithms: Sequence[str]
    hasher: Hasher | None = None
    accept_cost: bool = False
    routing: Routing | None = None
    ask_head: AskHead | None = None
    listed_still: ListedStill | None = None
    healed: int = 0
    reader: OrderedReader | None = None

    async def find(self, batch: Sequence[Evidence]) -> list[HashStatus | None]:
        """Return the status of each object, in order; None for an object that no longer exists.

        The batches come in the order of the listing, for which the ledger is read in one pass. S3's checksums by the
        wanted algorithms are recorded in the ledger at the same time.
        """
        present = [evidence for evidence in batch if not evidence.vanished]
        if not present:
            return [None] * len(batch)
        if self.reader is None:
            self.reader = self.ledger.in_order(self.bucket)
        statuses = list(map(self._sort, present, await self._recorded(present, self.reader.known)))
        if self.ask_head is not None:
            await self._ask(self.ask_head, present, statuses)
        wanted = [index for index, status in enumerate(statuses) if status.wanted]
        if self.hasher is not None and wanted:
            hashed = await self.hasher.hash([present[index].ref for index in wanted])
            for index, after in zip(wanted, hashed, strict=True):
                statuses[index] = await self._merged(present[index].ref, statuses[index], after)
        if self.hasher is not None:
            statuses = [await self._told(one, status) for one, status in zip(present, statuses, strict=True)]
        rest = iter(statuses)
        return [None if evidence.vanished else next(rest) for evidence in batch]

    async def _told(self, evidence: Evidence, status: HashStatus) -> HashStatus:
        """Return the status of an object in a run that hashes: with its failure if the run could not hash it.

        An archived object is unhashable, and so is one whose HEAD could not be read: it is undecided already. An object
        that could not be read for another reason is pending, and failed.
        """
        known = status.routed or status.code == "archived" or isinstance(evidence.head, Unread)
        if status.state == "unhashable" and not known:
            status = replace(status, state="pending")
        if not status.wanted or (status.code == "Vanished" and not await self._is_listed(evidence.ref)):
            return status
        return replace(status, failure=status.code or "other")

    async def _is_listed(self, ref: ObjectRef) -> bool:
        """True if a new listing still has the object unchanged. True also if the new listing fails."""
        try:
            return self.listed_still is None or await self.listed_still(ref)
        except CallFailed:
            return True

    async def close(self) -> None:
        """End the pass over the ledger."""
        if self.reader is not None:
            await self.reader.close()

    async def _ask(self, ask_head: AskHead, present: list[Evidence], statuses: list[HashStatus]) -> None:
        """Read the HEADs of objects whose digest the ledger lacks, if the listing announces their checksum.

        present, statuses: lists in which the evidence and the status of these objects are replaced.
        """
        places = [
            index
            for index, status in enumerate(statuses)
            if status.state != "known" and promised(present[index].ref).issuperset(self.algorithms)
        ]
        asked = await together(ask_head(present[index].ref) for index in places)
        there = {index: evidence for index, evidence in zip(places, asked, strict=True) if not evidence.vanished}
        found = await self._recorded([*there.values()], self._look_up) if there else []
        for (index, evidence), digests in zip(there.items(), found, strict=True):
            present[index], statuses[index] = evidence, self._sort(evidence, digests)

    def _sort(self, evidence: Evidence, digests: DigestSources) -> HashStatus:
        """Return an object's status from its facts and its known digests, before its bytes are read."""
        for name in self.algorithms:
            if name not in digests.recorded and name not in digests.stored:
                break
        else:
            return HashStatus("known", digests)
        if code := unhashable(evidence):
            routed = self.routing is not None and archived(evidence)
            return HashStatus("unhashable", digests, routed=routed, code=code)
        if self.routing is not None and self.routing.over is not None and evidence.ref.size > self.routing.over:
            return HashStatus("unhashable", digests, routed=True)
        if charged(evidence.ref.storage_class, evidence.ref.size) is not None and not self.accept_cost:
            return HashStatus("pending", digests, left_for_cost=True, code="left_for_cost")
        return HashStatus("pending", digests)

    async def _look_up(self, refs: Sequence[AnyVersion], algorithms: Sequence[str]) -> list[Mapping[str, str]]:
        return await self.ledger.known(self.bucket, refs, algorithms)

    async def _recorded(self, batch: Sequence[Evidence], look_up: Ask) -> list[DigestSources]:
        """Return the known digests of each object, in order: S3's checksums, and the ledger's digests.

        If the ledger has no digest by a wanted algorithm, S3's checksum by it is first recorded in the ledger. look_up:
        returns the ledger's digests.
        """
        stored = [s3_digests(evidence) for evidence in batch]
        stating = [index for index, checksums in enumerate(stored) if checksums]
        algorithms = tuple(dict.fromkeys((*self.algorithms, *(name for index in stating for name in stored[index]))))
        refs = [evidence.ref for evidence in batch]
        known = [*await look_up(refs, algorithms)]
        if damaged := healable_keys(refs, known):
            with suppress(LedgerReadOnlyError):  # the answer holds all the same
                self.healed += await self.ledger.heal(self.bucket, damaged)
        entries: dict[int, Entry] = {}
        for index in stating:
            checksums, row = stored[index], known[index]
            new = {name: one for name, one in checksums.items() if name in self.algorithms and name not in row}
            if new:
                entries[index] = entry_of(self.bucket, refs[index], new, source=S3)
        if entries:
            written = await self.ledger.record_many(list(entries.values()))
            # The look-up above missed these digests: another process wrote them since, or under a version ID that we
            # do not know.
            conflicts = [index for index, one in zip(entries, written, strict=True) if isinstance(one, DigestConflict)]
            if conflicts:
                again = await self._look_up([refs[index] for index in conflicts], algorithms)
                for index, row in zip(conflicts, again, strict=True):
                    known[index] = row
        found = [DigestSources(stored=one, recorded=other) for one, other in zip(stored, known, strict=True)]
        for index in stating:
            await self._note(refs[index], stored[index], "recorded", known[index])
        return found

    async def _merged(self, ref: ObjectRef, before: HashStatus, after: HashStatus) -> HashStatus:
        """Return the final status of an object.

        before: its status before the hashing. after: its status according to the hasher.
        """
        read, stored = after.digests.read, after.digests.stored
        if not read:
            return replace(before, state=after.state, code=after.code)
        (recorded,) = await self._look_up([ref], tuple(read))
        await self._note(ref, read, "stored", stored)
        digests = DigestSources(stored={**before.digests.stored, **stored}, recorded=recorded, read=read)
        return replace(before, state=after.state, digests=digests, code=after.code)

    async def _note(
        self, ref: ObjectRef, found: Mapping[str, str], word: Literal["recorded", "stored"], other: Mapping[str, str]
    ) -> None:
        """Write a "mismatch" event into the key's history for each digest in `found` that differs from the digest in
        `other`.

        word: "recorded" or "stored", the kind of the digests in `other`. An event is left out if the history ends with
        mismatches, and one of these has the same detail: the same algorithm, digests and source.
        """
        for name, digest in found.items():
            if name not in other or other[name] == digest:
                continue
            detail = {"algorithm": name, "digest": digest, word: other[name], "source": "s3"}
            history = await self.ledger.history(self.bucket, ref.key)
            latest = takewhile(lambda one: one.what == "mismatch", reversed(history))
            if not any(dict(one.detail) == detail for one in latest):
                await self.ledger.note(self.bucket, [disagreed(ref, detail)])


def unhashable(evidence: Evidence) -> str:
    """Return why the object's bytes cannot be read: `archived`, `SSE-C`, or the error code of a denied HEAD; "" if the
    bytes can be read.
    """
    head = evidence.head
    if archived(evidence):
        return "archived"
    if isinstance(head, Unread):
        return head.code if head.code in _DENIED else ""
    return "SSE-C" if isinstance(head, Head) and head.sse_customer_algorithm else ""


def archived(evidence: Evidence) -> bool:
    """True if the object is archived, and has no restored copy that can be read."""
    ref, head = evidence.ref, evidence.head if isinstance(evidence.head, Head) else None
    restored = ref.restored or bool(head and head.restored)
    return (ref.storage_class in ARCHIVED_CLASSES or bool(head and head.archive_status)) and not restored
