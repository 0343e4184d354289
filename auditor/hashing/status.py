"""Is this object hashed? By the ledger, by S3's own checksum, by us now, by the worker later, or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, Literal

from auditor.errors import DigestConflict
from auditor.hashing.in_process import Hasher, HashOutcome, State
from auditor.ledger.base import S3, Entry, Ledger
from auditor.ledger.history import disagreed
from auditor.model.dates import now_in_utc
from auditor.model.object import DigestSources, Evidence, Head, ObjectRef, ObjectVersion, Unread
from auditor.s3.checksums import promised, s3_digests
from auditor.s3.storage_class import ARCHIVED_CLASSES, charged

_DENIED: Final = frozenset({"403", "AccessDenied", "SSE-C"})


@dataclass(frozen=True, slots=True)
class Routing:
    """What is left to S3 Batch Operations: archived objects, and those of more than `over` bytes (None: of no size)."""

    over: int | None = None


@dataclass(slots=True)
class HashStatus:
    """What Fixity found of one object that is still there.

    left: its reading is charged, and nobody accepted that. routed: it is for S3 Batch Operations.
    """

    state: State
    digests: DigestSources
    left: bool = False
    routed: bool = False

    @property
    def wanted(self) -> bool:
        """The hashing worker is to read it."""
        return self.state == "pending" and not self.left


class HashStatusFinder:
    """Sorts audited objects into the five states of the summary's `hashing`. Made once a run.

    accept_cost: objects whose reading is charged are hashed too. routing: None: nothing is left to Batch Operations.
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

    async def look(self, batch: Sequence[Evidence]) -> list[HashStatus | None]:
        """What there is of each object, in order; None of one that vanished. What S3 stores is in the ledger then."""
        found: list[HashStatus | None] = [None] * len(batch)
        open_ones = [index for index, evidence in enumerate(batch) if not evidence.vanished]
        if not open_ones:
            return found
        there = [batch[index] for index in open_ones]
        digests = await self._recorded(there)
        unhashed: list[tuple[Evidence, HashStatus]] = []
        for index, evidence, known in zip(open_ones, there, digests, strict=True):
            looked = found[index] = self._sort(evidence, known)
            if looked.wanted:
                unhashed.append((evidence, looked))
        if self._hasher is not None and unhashed:
            taken = await self._hasher.take([evidence.ref for evidence, _ in unhashed])
            for (evidence, looked), one in zip(unhashed, taken, strict=True):
                await self._hashed(evidence.ref, looked, one)
        return found

    def _sort(self, evidence: Evidence, digests: DigestSources) -> HashStatus:
        known = digests.recorded.keys() | digests.stored.keys() | promised(evidence.ref)
        if known.issuperset(self.algorithms):
            return HashStatus("known", digests)
        if unhashable(evidence):
            return HashStatus("unhashable", digests, routed=self._routing is not None and archived(evidence))
        if self._routing is not None and self._routing.over is not None and evidence.ref.size > self._routing.over:
            return HashStatus("unhashable", digests, routed=True)
        costs = charged(evidence.ref.storage_class, evidence.ref.size) is not None
        return HashStatus("pending", digests, left=costs and not self._accept_cost)

    async def _recorded(self, batch: Sequence[Evidence]) -> list[DigestSources]:
        """The digests of each; what S3 stores of a wanted algorithm is recorded where the ledger has none."""
        stored = [s3_digests(evidence) for evidence in batch]
        asked = tuple(dict.fromkeys((*self.algorithms, *(name for one in stored for name in one))))
        refs = [evidence.ref for evidence in batch]
        known = await self._ledger.known(self._bucket, refs, asked)
        entries = {
            index: entry
            for index, (evidence, one) in enumerate(zip(batch, stored, strict=True))
            if (entry := self._entry(evidence.ref, one, known[index])) is not None
        }
        if entries:
            written = await self._ledger.record_many(list(entries.values()))
            # Another digest stands there which was not known: written meanwhile, or of a version that we cannot name.
            late = [index for index, one in zip(entries, written, strict=True) if isinstance(one, DigestConflict)]
            if late:
                again = await self._ledger.known(self._bucket, [refs[index] for index in late], asked)
                known = [*known]
                for index, one in zip(late, again, strict=True):
                    known[index] = one
        found = [DigestSources(stored=one, recorded=there) for one, there in zip(stored, known, strict=True)]
        for ref, digests in zip(refs, found, strict=True):
            await self._note(ref, digests.stored, "recorded", digests.recorded)
        return found

    def _entry(self, ref: ObjectRef, stored: Mapping[str, str], known: Mapping[str, str]) -> Entry | None:
        """S3's word as the ledger is to have it; None where there is nothing new in it."""
        new = {name: digest for name, digest in stored.items() if name in self.algorithms and name not in known}
        if not new:
            return None
        return Entry(
            bucket=self._bucket,
            key=ref.key,
            version_id=ref.version_id,
            etag=ref.etag,
            size=ref.size,
            digests=new,
            hashed_at=now_in_utc(),
            source=S3,
        )

    async def _hashed(self, ref: ObjectRef, looked: HashStatus, taken: HashOutcome) -> None:
        looked.state = taken.state
        if taken.read:
            (recorded,) = await self._ledger.known(self._bucket, [ref], tuple(taken.read))
            stored = {**looked.digests.stored, **taken.stored}
            looked.digests = DigestSources(stored=stored, recorded=recorded, read=taken.read)
            await self._note(ref, taken.read, "stored", taken.stored)

    async def _note(
        self, ref: ObjectRef, found: Mapping[str, str], word: Literal["recorded", "stored"], other: Mapping[str, str]
    ) -> None:
        """Write differing digests into the key's history, unless that is what it has said since anything else happened.

        word: what the other ones are called there.
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
    """Its bytes cannot be read: archived and not restored, encrypted with the customer's key, or denied."""
    head = evidence.head
    if isinstance(head, Unread):
        return head.code in _DENIED or archived(evidence)
    return archived(evidence) or bool(isinstance(head, Head) and head.sse_customer_algorithm)


def archived(evidence: Evidence) -> bool:
    """Its bytes cannot be read before they are restored, and are not."""
    ref, head = evidence.ref, evidence.head if isinstance(evidence.head, Head) else None
    restored = ref.restored or bool(head and head.restore and 'ongoing-request="false"' in head.restore)
    return (ref.storage_class in ARCHIVED_CLASSES or bool(head and head.archive_status)) and not restored
