"""Write outcomes into the history of object keys. Except a match, an outcome is written only if it is a new one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Protocol

from auditor.aio.groups import together
from auditor.ledger.base import Event, What
from auditor.ledger.matching import NULL
from auditor.model.dates import seconds_in_utc
from auditor.model.outcome import VerifyOutcome
from auditor.verify.compare import ExpectedDigest
from auditor.verify.outcome import Verified

TOGETHER: Final = 100
"""Number of events that are written in one call."""
_WHAT: Final[Mapping[VerifyOutcome, What]] = {
    VerifyOutcome.MISMATCH: "mismatch",
    VerifyOutcome.CHANGED: "changed",
    VerifyOutcome.MISSING: "missing",
    VerifyOutcome.LOST: "lost",
    VerifyOutcome.UNREADABLE: "unreadable",
}
_STATES: Final = frozenset({*_WHAT.values(), "verified", "recorded"})


class Keeper(Protocol):
    """The part of a ledger that writes and reads histories."""

    async def note(self, bucket: str, events: Sequence[Event]) -> None: ...
    async def history(self, bucket: str, key: str) -> list[Event]: ...


def _utc_now() -> datetime:
    return datetime.now(UTC)


class HistoryWriter:
    """Collects events and writes them in batches; flush() writes the last batch."""

    def __init__(self, keeper: Keeper, bucket: str, now: Callable[[], datetime] = _utc_now) -> None:
        self._keeper = keeper
        self._bucket = bucket
        self._now = now
        self._waiting: list[Event] = []
        self._writing = asyncio.Lock()

    async def add(self, verified: Verified, claims: Sequence[ExpectedDigest] = ()) -> None:
        """Add the events of an outcome, if it has any. claims: the expected digests of a match; all are right."""
        at = seconds_in_utc(self._now())
        if verified.outcome is VerifyOutcome.MATCH:
            self._waiting += _matches(verified, claims, at)
        elif what := _WHAT.get(verified.outcome):
            self._waiting.append(
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
        if len(self._waiting) >= TOGETHER:
            await self.flush()

    async def note(self, event: Event) -> None:
        """Add an event that is always new."""
        self._waiting.append(event)
        if len(self._waiting) >= TOGETHER:
            await self.flush()

    async def history(self, key: str) -> list[Event]:
        return await self._keeper.history(self._bucket, key)

    async def flush(self) -> None:
        async with self._writing:
            events, self._waiting = self._waiting, []
            try:
                news = await together(self._is_new(event) for event in events)
                if any(news):
                    new_ones = [event for event, new in zip(events, news, strict=True) if new]
                    await self._keeper.note(self._bucket, new_ones)
            except BaseException:  # cancelled or refused: keep the events for a later flush
                self._waiting = events + self._waiting
                raise

    async def _is_new(self, event: Event) -> bool:
        """True if the last state of this version in the history is another one. A verified match is always new."""
        if event.what in ("verified", "listed"):
            return True
        for past in reversed(await self._keeper.history(self._bucket, event.key)):
            if past.what in _STATES and _same_version(past, event):
                return past.what != event.what or dict(past.detail) != dict(event.detail)
        return True


def _same_version(one: Event, other: Event) -> bool:
    """True if the ETags are equal, and the version IDs are equal or one is missing.

    The listing may lack a version ID that the ledger has.
    """
    names = {one.version_id or NULL, other.version_id or NULL}
    return one.etag == other.etag and len(names - {NULL}) <= 1


def _matches(verified: Verified, claims: Sequence[ExpectedDigest], at: str) -> Iterator[Event]:
    """Yield one event for each digest of the ledger, and one for each digest that only a manifest has.

    If the ledger and a manifest have a digest of one algorithm, the ledger's event names the manifest as an origin too.
    """
    origins: dict[tuple[str, str | None, str | None], list[str]] = {}
    chains: dict[tuple[str, str | None, str | None], str] = {}
    for claim in sorted(claims, key=lambda claim: claim.version is None):
        same = [found for found in origins if found[0] == claim.algorithm]
        if claim.version is not None:
            same = [(claim.algorithm, claim.version.version_id, claim.version.etag)]
            chains[same[0]] = claim.version.digests[claim.algorithm].chain
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
            chain=chains.get((algorithm, version_id, etag), ""),
        )
