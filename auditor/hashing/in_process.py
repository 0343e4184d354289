"""Hash objects in this process, for `--hash` and `auditor hash`, and record their digests in the ledger."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from auditor.aio.budget import InFlightBudget
from auditor.errors import DigestConflict
from auditor.hashing.digest.object import hash_patiently
from auditor.hashing.digest.one_pass import BUFFERS
from auditor.hashing.digest.options import HashOptions
from auditor.hashing.digest.result import Failed, Hashed, Mismatch, Superseded, Unhashable
from auditor.hashing.limits import BYTES_IN_FLIGHT, CONCURRENCY
from auditor.hashing.queue.message import HashTask
from auditor.hashing.status import HashStatus
from auditor.ledger.base import DigestStore
from auditor.ledger.matching import has_digests
from auditor.model.object import DigestSources, ObjectRef
from auditor.s3.paced_reads import Reads

log = logging.getLogger(__name__)

NAMED: Final = 20
"""Largest number of objects of a run that the log names because they cannot be read."""


class InProcessHasher(Struct, eq=False):
    """Hashes objects in this process, several at once, within one limit of memory.

    An object that cannot be read, or whose digest differs from S3's checksum or the ledger's digest, stays "pending".
    The log names each object with two digests, and the first NAMED objects that cannot be read.
    """

    engine: Reads
    ledger: DigestStore
    algorithms: Sequence[str]
    options: HashOptions
    named: int = 0

    async def hash(self, refs: Sequence[ObjectRef]) -> list[HashStatus]:
        """Hash these objects, record their digests in the ledger, and return the status of each object, in order."""
        found: dict[tuple[str, str | None], HashStatus] = {}

        async def hash_one(task: HashTask) -> None:
            found[task.key, task.version_id] = await self._hash(task)

        permits = self.options.memory or InFlightBudget(CONCURRENCY, BYTES_IN_FLIGHT)
        await permits.for_each(map(HashTask.of, refs), hash_one, most=BUFFERS * self.options.buffer_size)
        return [found[ref.key, ref.version_id] for ref in refs]

    async def _hash(self, task: HashTask) -> HashStatus:
        result = await hash_patiently(self.engine, task, self.algorithms, self.options)
        if isinstance(result, Hashed):
            return await self._record(result)
        if isinstance(result, Unhashable):
            if result.code != "archived":
                self._name(task.key, result.code)
            return HashStatus("unhashable", code=result.code)
        if isinstance(result, Mismatch):
            log.error(
                "%r of %s: its bytes have the %s %s, but S3 stores %s: it is damaged or was replaced",
                *(task.key, self.options.bucket, result.algorithm, result.ours, result.stored),
            )
            read, stored = {result.algorithm: result.ours}, {result.algorithm: result.stored}
            return HashStatus("pending", DigestSources(read=read, stored=stored), code="ChecksumMismatch")
        if isinstance(result, Failed):
            self._name(task.key, result.code)
        return HashStatus("pending", code=result.code if isinstance(result, Failed | Superseded) else "")

    def _name(self, key: str, code: str) -> None:
        self.named += 1
        if self.named <= NAMED:
            more = "; further ones are only counted" if self.named == NAMED else ""
            log.warning("%r of %s could not be hashed: %s%s", key, self.options.bucket, code, more)

    async def _record(self, hashed: Hashed) -> HashStatus:
        try:
            new = await self.ledger.record(hashed.entry(self.options.bucket))
        except DigestConflict as error:  # a conflict concerns this object alone, so the others continue
            log.error("%s", error)
            return HashStatus("pending", DigestSources(read=hashed.digests), code="DigestConflict")
        if not new and not await has_digests(self.ledger, self.options.bucket, hashed.task, hashed.digests):
            self._name(hashed.task.key, "LedgerFault")
            return HashStatus("pending", DigestSources(read=hashed.digests), code="LedgerFault")
        return HashStatus("hashed_now")
