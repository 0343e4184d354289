"""Find out whether the bytes of a recorded digest are lost. They are lost if they were overwritten in a bucket that
keeps no earlier versions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from msgspec import Struct, field

from auditor.aws.failures import is_gone
from auditor.errors import CallFailed
from auditor.ledger.base import Event, KeyHistory, Version
from auditor.ledger.matching import NULL
from auditor.model.digest import VerifyOutcome
from auditor.s3.calls import Caller
from auditor.s3.engines.base import Engine
from auditor.verify.compare import is_damaged
from auditor.verify.merge import Pair
from auditor.verify.outcome import Verified


class LossFinder(Struct, eq=False):
    """Finds out whether the bytes of a recorded digest are lost, because another object was written over them.

    It asks S3 only once whether the bucket keeps versions. in_flight: takes the time at which an object was written;
    returns True if the ledger may not have the object's digest yet. keeps: S3's answer; None before it is asked.
    """

    bucket: str
    engine: Engine
    caller: Caller
    ledger: KeyHistory
    in_flight: Callable[[str], bool]
    keeps: bool | None = None
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def find(self, pair: Pair) -> Verified | None:
        """Return the outcome LOST if the bytes of the pair's version no longer exist; None if they may exist, or if the
        key's history has this loss already.

        Return the outcome UNREADABLE if S3 does not tell whether the bucket keeps versions.
        """
        lost, current = pair.version, pair.replaced_by
        if lost is None or current is None or pair.subject is None:
            raise ValueError("no object replaced the version")
        known = any(one.digests and one.etag == current.etag for one in pair.subject.versions)
        if is_damaged(pair.subject) or (not known and self.in_flight(current.last_modified)):
            return None  # the ledger's entry is damaged; or the object's digest is on its way, and may be the same
        try:
            if (current.version_id or NULL) != NULL or await self._keeps_versions(pair.key):
                return None
        except CallFailed as failure:
            if is_gone(failure):
                return None  # deleted since the listing: the next run looks at the whole key
            return _verified(pair, lost, VerifyOutcome.UNREADABLE, code=failure.code)
        if is_told_lost(lost, await self.ledger.history(self.bucket, pair.key)):
            return None
        return _verified(pair, lost, VerifyOutcome.LOST, replaced_by=current.etag)

    async def _keeps_versions(self, key: str) -> bool:
        """True if the bucket has or had versioning. Only then does S3 name a version in the answer to a HEAD of the
        key.
        """
        async with self.asking:
            if self.keeps is None:
                head = await self.caller.call("head", "HeadObject", lambda: self.engine.head(key, None, checksum=False))
                self.keeps = head.version_id is not None
            return self.keeps


def _verified(pair: Pair, lost: Version, outcome: VerifyOutcome, **detail: str) -> Verified:
    return Verified(key=pair.key, outcome=outcome, listed=False, etag=lost.etag, size=lost.size, detail=detail)


def is_told_lost(version: Version, history: Sequence[Event]) -> bool:
    """True if the key's history has a "lost" event of this version, and the version was not recorded or verified after
    that event.
    """
    seen = max(known.checked_at for known in version.digests.values())
    return any(event.what == "lost" and event.etag == version.etag and event.at >= seen for event in history)
