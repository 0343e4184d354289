"""Is this object hashed? By the ledger, by S3's own checksum, by us now, by the worker later, or not at all."""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import Executor
from typing import Final, Literal, Protocol

from auditor.engines.interface import Engine
from auditor.errors import DigestConflict
from auditor.hashing import Failed, Hashed, Permits, Unhashable, hash_many, hash_patiently
from auditor.ledgers.interface import Ledger
from auditor.messages import HashTask
from auditor.models import ARCHIVED_CLASSES, Evidence, Head, ObjectRef, Unread
from auditor.pace import Rate

log = logging.getLogger(__name__)

State = Literal["known", "hashed_now", "queued", "unhashable", "pending"]

_S3_CHECKSUMS: Final = {"sha256": "checksum_sha256", "sha1": "checksum_sha1"}
_DENIED: Final = frozenset({"403", "AccessDenied", "SSE-C"})


class Hasher(Protocol):
    """What is done with objects that are not hashed yet."""

    async def take(self, refs: Sequence[ObjectRef]) -> list[State]:
        """The new state of each, in order."""
        ...


class Fixity:
    """Sorts audited objects into the five states of the summary's `hashing`. Made once a run."""

    def __init__(self, bucket: str, ledger: Ledger, algorithms: Sequence[str], hasher: Hasher | None = None) -> None:
        self.algorithms = tuple(algorithms)
        self._bucket = bucket
        self._ledger = ledger
        self._hasher = hasher

    async def states(self, batch: Sequence[Evidence]) -> list[State | None]:
        """The state of each object, in order; None of one that vanished."""
        states: list[State | None] = [None] * len(batch)
        open_ones = [index for index, evidence in enumerate(batch) if not evidence.vanished]
        refs = [batch[index].ref for index in open_ones]
        found = await self._ledger.known(self._bucket, refs, self.algorithms) if refs else []
        unhashed: list[int] = []
        for index, digests in zip(open_ones, found, strict=True):
            evidence = batch[index]
            if set(self.algorithms) <= digests.keys() | s3_digests(evidence).keys() | _promised(evidence.ref):
                states[index] = "known"
            elif unhashable(evidence):
                states[index] = "unhashable"
            else:
                states[index] = "pending"
                unhashed.append(index)
        if self._hasher is not None and unhashed:
            for index, state in zip(
                unhashed, await self._hasher.take([batch[index].ref for index in unhashed]), strict=True
            ):
                states[index] = state
        return states


def s3_digests(evidence: Evidence) -> Mapping[str, str]:
    """Digests that S3 itself stores of the whole object, lower-case hex; a composite checksum is none.

    ChecksumType tells FULL_OBJECT from COMPOSITE; where a server does not say, only a multipart ETag ends in `-N`.
    """
    head = evidence.head
    if not isinstance(head, Head):
        return {}
    multipart = "-" in head.etag
    if not (head.checksum_type == "FULL_OBJECT" or (head.checksum_type is None and not multipart)):
        return {}
    stored = {name: getattr(head, field) for name, field in _S3_CHECKSUMS.items()}
    return {name: digest for name, text in stored.items() if text and (digest := _hex(text))}


def _promised(ref: ObjectRef) -> frozenset[str]:
    """Algorithms whose full-object checksum S3 stores, as the listing says, whether or not we may read its value."""
    whole = ref.checksum_type == "FULL_OBJECT" or (ref.checksum_type is None and "-" not in ref.etag)
    return frozenset(name.lower() for name in ref.checksum_algorithms) if whole else frozenset()


def _hex(text: str) -> str | None:
    try:
        return base64.b64decode(text, validate=True).hex()
    except (binascii.Error, ValueError):
        return None


def unhashable(evidence: Evidence) -> bool:
    """Its bytes cannot be read: archived and not restored, encrypted with the customer's key, or denied."""
    head = evidence.head
    if isinstance(head, Unread):
        return head.code in _DENIED or _archived(evidence.ref, None)
    known = head if isinstance(head, Head) else None
    return _archived(evidence.ref, known) or bool(known and known.sse_customer_algorithm)


def _archived(ref: ObjectRef, head: Head | None) -> bool:
    restored = ref.restored or bool(head and head.restore and 'ongoing-request="false"' in head.restore)
    archived = ref.storage_class in ARCHIVED_CLASSES or bool(head and head.archive_status)
    return archived and not restored


class InProcessHasher:
    """Hashes here and now (`--hash`, `auditor hash`), several objects at once in bounded memory.

    executor: where large chunks are hashed. failed: how many could not be hashed, or have another digest than the
    ledger remembers; each of them stays pending.
    """

    def __init__(
        self,
        bucket: str,
        engine: Engine,
        ledger: Ledger,
        algorithms: Sequence[str],
        *,
        rate: Rate,
        concurrency: int,
        chunk_size: int,
        executor: Executor,
    ) -> None:
        self._bucket = bucket
        self._rate = rate
        self._engine = engine
        self._ledger = ledger
        self._algorithms = tuple(algorithms)
        self._permits = Permits(concurrency, max(4 * chunk_size, 64 * 1024 * 1024))
        self._chunk_size = chunk_size
        self._executor = executor
        self.failed = 0

    async def take(self, refs: Sequence[ObjectRef]) -> list[State]:
        states: dict[tuple[str, str | None], State] = {}

        async def one(task: HashTask) -> None:
            states[task.key, task.version_id] = await self._hash(task)

        async def tasks() -> AsyncIterator[HashTask]:
            for ref in refs:
                yield HashTask(ref.key, ref.version_id, ref.etag, ref.size, 0)

        await hash_many(one, tasks(), self._permits, chunk_size=self._chunk_size)
        return [states[ref.key, ref.version_id] for ref in refs]

    async def _hash(self, task: HashTask) -> State:
        result = await hash_patiently(
            self._engine,
            task,
            self._algorithms,
            chunk_size=self._chunk_size,
            executor=self._executor,
            turn=self._rate.take,
        )
        if isinstance(result, Hashed):
            return await self._record(result)
        if isinstance(result, Unhashable):
            return "unhashable"
        self.failed += isinstance(result, Failed)
        return "pending"

    async def _record(self, hashed: Hashed) -> State:
        try:
            await self._ledger.record(hashed.entry(self._bucket))
        except DigestConflict as error:  # of this object alone: the others are none the worse for it
            log.error("%s", error)
            self.failed += 1
            return "pending"
        return "hashed_now"
