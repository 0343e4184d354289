"""Find out whether each object is hashed: by the ledger, by S3's own checksum, by us now, or by the worker later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final, Literal, Protocol

from auditor.errors import DigestConflict
from auditor.hashing.digest.result import entry_of
from auditor.ledger.base import S3, Entry, Ledger
from auditor.ledger.history import disagreed
from auditor.model.object import DigestSources, Evidence, Head, ObjectRef, ObjectVersion, Unread
from auditor.s3.checksums import promised, s3_digests
from auditor.s3.storage_class import ARCHIVED_CLASSES, charged

State = Literal["known", "hashed_now", "queued", "unhashable", "pending"]

_DENIED: Final = frozenset({"403", "AccessDenied", "SSE-C"})
_NO_DIGESTS: Final = DigestSources()


@dataclass(frozen=True, slots=True)
class Routing:
    """S3 Batch Operations hashes archived objects, and objects of more than `over` bytes (None: of no size)."""

    over: int | None = None


@dataclass(frozen=True, slots=True)
class HashStatus:
    """Whether one object is hashed.

    digests: by source; `read` only where the bytes contradict S3 or the ledger. left_for_cost: pending, for reading it
    is charged and the settings do not accept that. routed: S3 Batch Operations hashes it.
    """

    state: State
    digests: DigestSources = _NO_DIGESTS
    left_for_cost: bool = False
    routed: bool = False

    @property
    def wanted(self) -> bool:
        """The hashing worker should read the object."""
        return self.state == "pending" and not self.left_for_cost


class Hasher(Protocol):
    """Hashes the pending objects of a run."""

    async def hash(self, refs: Sequence[ObjectRef]) -> list[HashStatus]:
        """The status of each object, in order. Its digests: `read` and `stored`, where the bytes contradict S3 or the
        ledger; the object then stays pending."""
        ...


class HashStatusFinder:
    """Sorts objects into the five states of the summary's `hashing`; one for a run.

    hasher: hashes the pending objects now; None: they stay pending. accept_cost: hash objects whose reading is charged.
    routing: None: S3 Batch Operations hashes nothing.
    """

    def __init__(
        self,
        bucket: str,
        ledger: Ledger,
        algorithms: Sequence[str],
        hasher: Hasher | None = None,
        *,
        accept_cost: bool = False,
        routing: Routing | None = None,
    ) -> None:
        self.algorithms = tuple(algorithms)
        self._bucket = bucket
        self._ledger = ledger
        self._hasher = hasher
        self._accept_cost = accept_cost
        self._routing = routing

    async def find(self, batch: Sequence[Evidence]) -> list[HashStatus | None]:
        """The status of each object, in order; None of a vanished one. The ledger then has S3's checksums."""
        present = [evidence for evidence in batch if not evidence.vanished]
        if not present:
            return [None] * len(batch)
        statuses = list(map(self._sort, present, await self._recorded(present)))
        wanted = [index for index, status in enumerate(statuses) if status.wanted]
        if self._hasher is not None and wanted:
            hashed = await self._hasher.hash([present[index].ref for index in wanted])
            for index, after in zip(wanted, hashed, strict=True):
                statuses[index] = await self._merged(present[index].ref, statuses[index], after)
        rest = iter(statuses)
        return [None if evidence.vanished else next(rest) for evidence in batch]

    def _sort(self, evidence: Evidence, digests: DigestSources) -> HashStatus:
        known = digests.recorded.keys() | digests.stored.keys() | promised(evidence.ref)
        if known.issuperset(self.algorithms):
            return HashStatus("known", digests)
        if unhashable(evidence):
            return HashStatus("unhashable", digests, routed=self._routing is not None and archived(evidence))
        if self._routing is not None and self._routing.over is not None and evidence.ref.size > self._routing.over:
            return HashStatus("unhashable", digests, routed=True)
        costs = charged(evidence.ref.storage_class, evidence.ref.size) is not None
        return HashStatus("pending", digests, left_for_cost=costs and not self._accept_cost)

    async def _recorded(self, batch: Sequence[Evidence]) -> list[DigestSources]:
        """The digests of each object. S3's checksums of wanted algorithms go to the ledger where it has none."""
        stored = [s3_digests(evidence) for evidence in batch]
        algorithms = tuple(dict.fromkeys((*self.algorithms, *(name for one in stored for name in one))))
        refs = [evidence.ref for evidence in batch]
        known = [*await self._ledger.known(self._bucket, refs, algorithms)]
        entries: dict[int, Entry] = {}
        for index, (ref, checksums) in enumerate(zip(refs, stored, strict=True)):
            new = {name: one for name, one in checksums.items() if name in self.algorithms and name not in known[index]}
            if new:
                entries[index] = entry_of(self._bucket, ref, new, source=S3)
        if entries:
            written = await self._ledger.record_many(list(entries.values()))
            # A conflicting digest was not known: written meanwhile, or of a version whose ID we do not know.
            conflicts = [index for index, one in zip(entries, written, strict=True) if isinstance(one, DigestConflict)]
            if conflicts:
                again = await self._ledger.known(self._bucket, [refs[index] for index in conflicts], algorithms)
                for index, row in zip(conflicts, again, strict=True):
                    known[index] = row
        found = [DigestSources(stored=one, recorded=other) for one, other in zip(stored, known, strict=True)]
        for ref, digests in zip(refs, found, strict=True):
            await self._note(ref, digests.stored, "recorded", digests.recorded)
        return found

    async def _merged(self, ref: ObjectRef, before: HashStatus, after: HashStatus) -> HashStatus:
        """The status of an object that the hasher has read."""
        read, stored = after.digests.read, after.digests.stored
        if not read:
            return replace(before, state=after.state)
        (recorded,) = await self._ledger.known(self._bucket, [ref], tuple(read))
        await self._note(ref, read, "stored", stored)
        digests = DigestSources(stored={**before.digests.stored, **stored}, recorded=recorded, read=read)
        return replace(before, state=after.state, digests=digests)

    async def _note(
        self, ref: ObjectRef, found: Mapping[str, str], word: Literal["recorded", "stored"], other: Mapping[str, str]
    ) -> None:
        """Add a "mismatch" event to the key's history for each differing digest, unless its latest events say the same.

        word: the name of the other digest in the event.
        """
        for name, digest in found.items():
            if name not in other or other[name] == digest:
                continue
            detail = {"algorithm": name, "digest": digest, word: other[name], "source": "s3"}
            version = ObjectVersion(ref.key, ref.version_id, ref.etag, ref.size)
            history = await self._ledger.history(self._bucket, ref.key)
            latest = takewhile(lambda one: one.what == "mismatch", reversed(history))
            if not any(dict(one.detail) == detail for one in latest):
                await self._ledger.note(self._bucket, [disagreed(version, detail)])


def unhashable(evidence: Evidence) -> bool:
    """Return whether its bytes cannot be read: archived, encrypted with the customer's key, or denied."""
    head = evidence.head
    if isinstance(head, Unread):
        return head.code in _DENIED or archived(evidence)
    return archived(evidence) or bool(isinstance(head, Head) and head.sse_customer_algorithm)


def archived(evidence: Evidence) -> bool:
    """Return whether its bytes must be restored before they can be read."""
    ref, head = evidence.ref, evidence.head if isinstance(evidence.head, Head) else None
    restored = ref.restored or bool(head and head.restore and 'ongoing-request="false"' in head.restore)
    return (ref.storage_class in ARCHIVED_CLASSES or bool(head and head.archive_status)) and not restored
