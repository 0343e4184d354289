"""Read the listed version of an object again, and find out the object's outcome."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from auditor.errors import CallFailed, DigestConflict
from auditor.hashing.digest.result import Failed, Hashed, Mismatch, Paused, Result, Superseded, Unhashable
from auditor.hashing.queue.message import HashTask
from auditor.ledger.base import S3, DigestStore
from auditor.model.digest import VerifyOutcome
from auditor.s3.calls import Caller
from auditor.s3.engines.base import Engine
from auditor.s3.listing import listed_still
from auditor.verify.compare import ExpectedDigest, ReadRequest, verified
from auditor.verify.outcome import Verified

log = logging.getLogger(__name__)

Hash = Callable[[HashTask, Sequence[str]], Awaitable[Result]]
"""A function that reads one object, and computes its digest by each of the given algorithms."""


class ReadResult(Struct, frozen=True):
    """The outcome of one object.

    bytes_read: number of bytes read; None if the object was not read to its end. recorded: True if new digests of the
    object were written into the ledger.
    """

    verified: Verified
    bytes_read: int | None = None
    recorded: bool = False


class VerifyReader(Struct, eq=False):
    """Reads the objects of read requests. A failure of one object becomes the object's outcome, not an exception.

    hash_one: reads and hashes an object. wanted: algorithms of the digests that are recorded for new objects.
    """

    bucket: str
    engine: Engine
    caller: Caller
    ledger: DigestStore
    hash_one: Hash
    wanted: Sequence[str]

    async def answer(self, question: ReadRequest) -> ReadResult | Paused:
        """Read the requested object and return its outcome, or Paused if a stop came in the middle of the object.

        Raises only errors that every object would meet.
        """
        ref = question.ref
        names = [claim.algorithm for claim in question.claims] + [*(self.wanted if question.keep else ())]
        result = await self.hash_one(HashTask(ref.key, ref.version_id, ref.etag, ref.size), tuple(dict.fromkeys(names)))
        match result:
            case Hashed():
                return await self._hashed(question, result)
            case Paused():
                return result
            case Mismatch():
                claim = ExpectedDigest(result.algorithm, result.stored, S3)
                return ReadResult(question.differs(claim, result.ours), result.bytes_read)
            case Superseded():
                return ReadResult(await self._superseded(question, result.code))
            case Unhashable():
                if result.code == "archived":
                    return ReadResult(verified(ref, VerifyOutcome.ARCHIVED, storage_class=ref.storage_class))
                return ReadResult(verified(ref, VerifyOutcome.UNREADABLE, code=result.code))
            case Failed(code="SizeDiffers") if question.claims:
                detail = {"algorithm": "size", "recorded": str(ref.size), "code": result.code}
                return ReadResult(verified(ref, VerifyOutcome.MISMATCH, **detail))
            case Failed():
                return ReadResult(verified(ref, VerifyOutcome.UNREADABLE, code=result.code))

    async def _hashed(self, question: ReadRequest, hashed: Hashed) -> ReadResult:
        found, size = question.compare(hashed.digests), hashed.bytes_read
        if not question.keep or found.outcome is VerifyOutcome.MISMATCH:
            return ReadResult(found, size)
        try:
            return ReadResult(found, size, await self.ledger.record(hashed.entry(self.bucket)))
        except DigestConflict as error:  # another process recorded another digest meanwhile
            log.error("%s", error)
            return ReadResult(verified(question.ref, VerifyOutcome.MISMATCH, code="DigestConflict"), size)

    async def _superseded(self, question: ReadRequest, code: str) -> Verified:
        """Return IN_FLIGHT if the object was overwritten or deleted after the listing; else UNREADABLE.

        A new listing decides. The outcome is UNREADABLE if the new listing still has the object unchanged, or if it
        fails. code: the error code with which the read failed.
        """
        try:
            if not await listed_still(self.engine, self.caller, question.ref):
                return verified(question.ref, VerifyOutcome.IN_FLIGHT)
        except CallFailed as failure:
            code = failure.code
        return verified(question.ref, VerifyOutcome.UNREADABLE, code=code)
