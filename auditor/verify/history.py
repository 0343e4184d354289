"""Write the outcomes of a verification into the keys' histories: every match, and any other outcome that differs from
the last one in the history.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from auditor.errors import LedgerReadOnlyError
from auditor.ledger.base import Event, What
from auditor.ledger.history import bounded
from auditor.ledger.matching import NULL
from auditor.model.dates import seconds_in_utc
from auditor.model.digest import VerifyOutcome
from auditor.verify.compare import ExpectedDigest
from auditor.verify.outcome import Verified

log = logging.getLogger(__name__)

TOGETHER: Final = 100
"""Number of events that one call writes into the ledger."""
_WHAT: Final[Mapping[VerifyOutcome, What]] = {
    VerifyOutcome.MISMATCH: "mismatch",
    VerifyOutcome.CHANGED: "changed",
    VerifyOutcome.MISSING: "missing",
    VerifyOutcome.LOST: "lost",
    VerifyOutcome.UNREADABLE: "unreadable",
}
_FINDINGS: Final = frozenset(_WHAT.values()) - {"unreadable"}
_STATES: Final = frozenset({*_WHAT.values(), "verified", "recorded", "acknowledged"})


class Keeper(Protocol):
    """The part of a ledger that writes and reads the histories of object keys."""

    async def note(self, bucket: str, events: Sequence[Event]) -> None: ...
    async def history(self, bucket: str, key: str) -> list[Event]: ...


def has_history(outcome: VerifyOutcome) -> bool:
    """True for the outcomes MISMATCH, CHANGED, MISSING, LOST and UNREADABLE, which are written into the key's history.

    A MATCH is written too, but only after a read; therefore the answer for a MATCH is False.
    """
    return outcome in _WHAT


class HistoryWriter(Struct, eq=False):
    """Collects events for the keys' histories, and writes them into the ledger in batches.

    flush() writes the last batch. If the ledger is read-only, verification continues, and `unnoted` counts the events
    that are not written. waiting: the events that no call has written yet.
    """

    keeper: Keeper
    bucket: str
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    waiting: list[Event] = field(default_factory=list)
    refused: int = 0
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def unnoted(self) -> int:
        """Number of events that are missing in the ledger, because the ledger is read-only or did not answer before the
        end.
        """
        return self.refused + len(self.waiting)

    async def add(self, verified: Verified, claims: Sequence[ExpectedDigest] = ()) -> Verified:
        """Write an object's outcome into its key's history, if the outcome is a match or differs from the last outcome
        in the history.

        Return the object with its outcome. The outcome is ACKNOWLEDGED if a person has acknowledged this same finding.
        claims: the expected digests of a match; each becomes a "verified" event.
        """
        at = seconds_in_utc(self.now())
        if verified.outcome is VerifyOutcome.MATCH:
            await self.note(*_matches(verified, claims, at))
        elif what := _WHAT.get(verified.outcome):
            event = bounded(
                Event(
                    key=verified.key,
                    at=at,
                    what=what,
                    version_id=verified.version_id,
                    etag=verified.etag,
                    size=verified.size,
                    detail=verified.detail,
                )
            )
            last = _last(await self.keeper.history(self.bucket, event.key), event)
            if last is not None and last.what == "acknowledged" and _is_of(last, event):
                detail = {**verified.detail, **last.detail}
                return replace(verified, outcome=VerifyOutcome.ACKNOWLEDGED, detail=detail)
            if last is None or last.what != event.what or dict(last.detail) != dict(event.detail):
                await self.note(event)
        return verified

    async def note(self, *events: Event) -> None:
        """Add these events to the batch, even if the histories have them, and write the batch if it is full."""
        self.waiting += events
        if len(self.waiting) >= TOGETHER:
            await self.flush()

    async def history(self, key: str) -> list[Event]:
        return await self.keeper.history(self.bucket, key)

    async def flush(self) -> None:
        async with self.writing:
            events, self.waiting = self.waiting, []
            if not events:
                return
            try:
                await self.keeper.note(self.bucket, events)
            except LedgerReadOnlyError as error:
                if not self.refused:
                    log.warning("%s; the verification continues, and notes nothing of it there", error)
                self.refused += len(events)
            except BaseException:  # cancelled or refused: keep the events for a later flush
                self.waiting = events + self.waiting
                raise


def acknowledgements(history: Sequence[Event], at: str, by: str, reason: str) -> list[Event]:
    """Return an "acknowledged" event for each version of a key whose last outcome in the history is a finding, such as
    a mismatch.

    at, by, reason: time, person and reason of the acknowledgement.
    """
    found: list[Event] = []
    for event in history:
        if event.what in _FINDINGS and _last(history, event) is event:
            detail = {**event.detail, "finding": event.what, "by": by, "reason": reason}
            found.append(replace(event, at=at, what="acknowledged", detail=detail))
    return found


def _is_of(acknowledged: Event, finding: Event) -> bool:
    """True if the event acknowledges this finding: it names the same kind of finding and all the finding's details."""
    said = acknowledged.detail
    return said.get("finding") == finding.what and all(said.get(name) == one for name, one in finding.detail.items())


def _last(history: Sequence[Event], event: Event) -> Event | None:
    """Return the last outcome in the history for the version that `event` is about; None if the history has no outcome
    of this version.
    """
    return next((past for past in reversed(history) if past.what in _STATES and _same_version(past, event)), None)


def _same_version(one: Event, other: Event) -> bool:
    """True if two events are about one object version: with equal ETags, and with equal version IDs or only one ID.

    The listing may lack a version ID that the ledger has.
    """
    names = {one.version_id or NULL, other.version_id or NULL}
    return one.etag == other.etag and len(names - {NULL}) <= 1


def _matches(verified: Verified, claims: Sequence[ExpectedDigest], at: str) -> Iterator[Event]:
    """Yield the "verified" events of a match: one for each expected digest of the ledger, and one for each algorithm
    that only a manifest has.

    If a manifest has a digest by the algorithm of a ledger's digest, the event of that digest names the manifest too.
    """
    origins: dict[tuple[str, str | None, str | None], list[str]] = {}
    for claim in sorted(claims, key=lambda claim: claim.version is None):
        same = [found for found in origins if found[0] == claim.algorithm]
        if claim.version is not None:
            same = [(claim.algorithm, claim.version.version_id, claim.version.etag)]
        for place in same or [(claim.algorithm, verified.version_id, verified.etag)]:
            origins.setdefault(place, []).append(claim.origin)
    digests = {claim.algorithm: claim.digest.lower() for claim in claims}
    for (algorithm, version_id, etag), names in origins.items():
        yield Event(
            key=verified.key,
            at=at,
            what="verified",
            version_id=version_id,
            etag=etag,
            size=verified.size,
            detail={"algorithm": algorithm, "digest": digests[algorithm], "origin": ", ".join(dict.fromkeys(names))},
        )
