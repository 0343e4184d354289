"""Read the ledger beside the listing: from the ledger itself, or from a snapshot. Records of the snapshot that may be
outdated are read anew.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from auditor.aio.groups import together
from auditor.errors import OutputError
from auditor.ledger.base import KeyRecord, Ledger
from auditor.ledger.snapshot import ScannedLedger
from auditor.model.dates import iso_date, seconds_in_utc
from auditor.model.object import ObjectRef
from auditor.model.target import Target
from auditor.runs.stores.base import Store
from auditor.s3.listing import Listed
from auditor.verify.compare import Comparison
from auditor.verify.deletion import is_settled
from auditor.verify.ledger_snapshot import InThread, LedgerSnapshot, discard_abandoned
from auditor.verify.merge import Pair, merged, replaced

log = logging.getLogger(__name__)

_SLACK: Final = timedelta(hours=1)
"""Largest difference between S3's clock and the auditor's that is allowed for."""
_AT_ONCE: Final = 16


class LedgerReading:
    """Reads the ledger's records of a target's keys, beside the target's listing.

    A ledger that can begin at any key is read directly. One that must be scanned is scanned by the first of several
    invocations, which leaves a snapshot to the others.

    store, folder: place of the snapshot; the store is None if there is one invocation only. in_thread: calls the
    store's functions.
    """

    def __init__(self, ledger: Ledger, bucket: str, store: Store | None, folder: str, in_thread: InThread) -> None:
        self._ledger = ledger
        self._bucket = bucket
        self._store = store
        self._in_thread = in_thread
        self._snapshot: LedgerSnapshot | None = None
        self._is_read = False
        if store is not None and isinstance(ledger, ScannedLedger):
            self._snapshot = LedgerSnapshot(store, folder, bucket, ledger, in_thread)
            self._is_read = ledger.scanned

    def pairs(self, pages: AsyncGenerator[list[Listed], None], target: Target) -> AsyncGenerator[list[Pair], None]:
        """Yield a Pair for each object that the listing or the ledger has (see merge.merged()).

        pages: the target's listing.
        """
        prefix, start_after = target.prefix, target.start_after or ""
        if self._snapshot is None or not self._is_read:
            return merged(pages, self._ledger.subjects(self._bucket, prefix, start_after), target)
        return self._renewed(self._snapshot, merged(pages, self._snapshot.records(prefix, start_after), target))

    async def end(self) -> None:
        """Delete the snapshot, which no later invocation needs, and those of killed verifications. If that fails, log
        it, and leave the rest.

        A ledger that was given an order since the first invocation may have one, too.
        """
        if self._snapshot is None or self._store is None:
            return
        try:
            await self._in_thread(self._snapshot.discard)
            await self._in_thread(discard_abandoned, self._store, self._bucket, datetime.now(UTC))
        except OutputError as error:
            log.warning("the snapshot of the ledger is not deleted: %s", error)

    async def _renewed(
        self, snapshot: LedgerSnapshot, pairs: AsyncGenerator[list[Pair], None]
    ) -> AsyncGenerator[list[Pair], None]:
        """Yield the pairs. Read the record of a key anew where the pair may say something wrong of the object because
        the record is that of the snapshot.
        """
        async with aclosing(pairs):
            async for page in pairs:
                since = seconds_in_utc(iso_date(snapshot.taken_at) - _SLACK) if snapshot.taken_at else ""
                doubtful = list(dict.fromkeys(pair.key for pair in page if is_doubtful(pair, since)))
                fresh: dict[str, KeyRecord | None] = {}
                for first in range(0, len(doubtful), _AT_ONCE):
                    keys = doubtful[first : first + _AT_ONCE]
                    found = await together(self._ledger.subject(self._bucket, key) for key in keys)
                    fresh.update(zip(keys, found, strict=True))
                if fresh:
                    page = [now for pair in page if (now := renewed(pair, fresh.get(pair.key))) is not None]
                yield page


def is_doubtful(pair: Pair, since: str) -> bool:
    """True if the ledger may have learned of the pair's object after the snapshot, in a way that changes its outcome.

    That is an object that is not listed, and of which no deletion or retirement is known; a listed object of which the
    record has no version; and an object without a record that was written at or after `since`.
    """
    if pair.absent:
        return not is_settled(pair)
    if pair.ref is None:
        return False
    if pair.subject is None:
        return pair.ref.last_modified >= since
    return not Comparison.versions(pair.ref, pair.subject)


def renewed(pair: Pair, subject: KeyRecord | None) -> Pair | None:
    """Return the pair with the present record of its key. Return None if the pair has nothing to report by this record.

    subject: None if the record was not read anew, or if the ledger does not know the key.
    """
    if subject is None:
        return pair
    if pair.version is None:
        if pair.absent and pair.subject is not None and not pair.subject.versions:
            subject = replace(subject, versions=())  # what a manifest alone expects
        return replace(pair, subject=subject)
    name = (pair.version.version_id, pair.version.etag)
    version = next((one for one in subject.versions if (one.version_id, one.etag) == name), pair.version)
    if pair.replaced_by is not None and not _is_replaced(subject, pair.replaced_by, name):
        return None
    return replace(pair, subject=subject, version=version)


def _is_replaced(subject: KeyRecord, current: ObjectRef, name: tuple[str, str]) -> bool:
    return any((one.version_id, one.etag) == name for one in replaced(subject, current, frozenset()))
