"""What is written into the history of keys: each state when it begins, and many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from auditor.errors import LedgerReadOnlyError
from auditor.ledger.base import Event, Known, Version
from auditor.model.digest import VerifyOutcome
from auditor.verify.compare import ExpectedDigest
from auditor.verify.history import TOGETHER, HistoryWriter, acknowledgements
from auditor.verify.outcome import Verified


class Histories:
    """Keeps what is noted, by key; most: the largest number of events that came together."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.most = 0

    async def note(self, bucket: str, events: Sequence[Event]) -> None:
        self.events += events
        self.most = max(self.most, len(events))

    async def history(self, bucket: str, key: str) -> list[Event]:
        return [event for event in self.events if event.key == key]


class Slow(Histories):
    """Takes no note before it is set free."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.free = asyncio.Event(), asyncio.Event()

    async def note(self, bucket: str, events: Sequence[Event]) -> None:
        self.begun.set()
        await self.free.wait()
        await super().note(bucket, events)


class Minutes:
    """A clock that moves on by a minute with each look."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 2, tzinfo=UTC)

    def __call__(self) -> datetime:
        self._now += timedelta(minutes=1)
        return self._now


def found(outcome: VerifyOutcome, found: str = "aa", *, version_id: str | None = None) -> Verified:
    detail = {"algorithm": "sha256", "found": found} if outcome is VerifyOutcome.MISMATCH else {}
    return Verified(key="key", outcome=outcome, version_id=version_id, etag="e", size=1, detail=detail)


KNOWN = Known(digest="AB", source="auditor", recorded_at="", verified_at=None, bytes_read=1)
VERSION = Version(version_id="null", etag="e", size=1, digests={"sha256": KNOWN}, first_seen="")
CLAIM = ExpectedDigest("sha256", "AB", "ledger", VERSION)


async def noted(*states: Verified) -> list[Event]:
    """In as many runs."""
    histories, clock = Histories(), Minutes()
    for state in states:
        notes = HistoryWriter(histories, "bucket", clock)
        await notes.add(state, [CLAIM] if state.outcome is VerifyOutcome.MATCH else [])
        await notes.flush()
    return histories.events


async def test_state_is_noted_once_and_again_after_another() -> None:
    bad, good = found(VerifyOutcome.MISMATCH), found(VerifyOutcome.MATCH)
    events = await noted(bad, bad, good, bad, bad, found(VerifyOutcome.MISMATCH, "bb"), found(VerifyOutcome.MISSING))
    assert [event.what for event in events] == ["mismatch", "verified", "mismatch", "mismatch", "missing"]
    assert {(event.key, event.etag, event.size) for event in events} == {("key", "e", 1)}


async def test_other_state_without_a_detail_is_a_line_too() -> None:
    events = await noted(found(VerifyOutcome.CHANGED), found(VerifyOutcome.MISSING))
    assert [event.what for event in events] == ["changed", "missing"]


async def test_acknowledged_change_excuses_no_loss() -> None:
    histories = Histories()
    notes = HistoryWriter(histories, "bucket", Minutes())
    await notes.add(found(VerifyOutcome.CHANGED))
    await notes.flush()
    histories.events += acknowledgements(histories.events, "2026-02-01", "Ada", "our own upload")
    assert (await notes.add(found(VerifyOutcome.CHANGED))).outcome is VerifyOutcome.ACKNOWLEDGED
    assert (await notes.add(found(VerifyOutcome.MISSING))).outcome is VerifyOutcome.MISSING


async def test_last_finding_of_each_version_is_acknowledged_in_the_order_of_the_history() -> None:
    good = found(VerifyOutcome.MATCH)
    one, two = (found(VerifyOutcome.MISMATCH, version_id=name) for name in ("v1", "v2"))
    events = [*await noted(one, two, replace(one, detail={"found": "bb"})), *await noted(good)]
    acknowledged = acknowledgements(events[:3], "2026-02-01", "Ada", "known")
    assert [(event.version_id, event.what, event.at) for event in acknowledged] == [
        ("v2", "acknowledged", "2026-02-01"),
        ("v1", "acknowledged", "2026-02-01"),
    ]
    assert acknowledged[1].detail == {"found": "bb", "finding": "mismatch", "by": "Ada", "reason": "known"}
    assert acknowledgements(events, "2026-02-01", "Ada", "known") == []


async def test_what_a_ledger_cannot_take_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    class ReadOnly(Histories):
        async def note(self, bucket: str, events: Sequence[Event]) -> None:
            raise LedgerReadOnlyError("the ledger is read only")

    notes = HistoryWriter(ReadOnly(), "bucket", Minutes())
    for number in range(TOGETHER + 7):
        await notes.add(Verified(key=f"{number}", outcome=VerifyOutcome.MISSING))
    await notes.flush()
    assert notes.unnoted == TOGETHER + 7
    assert caplog.text.count("read only") == 1


async def test_each_verification_of_a_match_is_a_line() -> None:
    events = await noted(found(VerifyOutcome.MATCH), found(VerifyOutcome.MATCH))
    assert [(event.what, event.detail["digest"], event.version_id, event.size) for event in events] == [
        ("verified", "ab", "null", 1)
    ] * 2


async def test_versions_have_states_of_their_own() -> None:
    one, two = found(VerifyOutcome.MISSING, version_id="1"), found(VerifyOutcome.MISSING, version_id="2")
    assert len(await noted(one, two, one, two)) == 2


async def test_what_is_no_news_is_not_noted() -> None:
    quiet = (
        VerifyOutcome.NEW,
        VerifyOutcome.DELETED,
        VerifyOutcome.ARCHIVED,
        VerifyOutcome.IN_FLIGHT,
        VerifyOutcome.NOT_DUE,
        VerifyOutcome.LEFT_FOR_COST,
    )
    assert await noted(*map(found, quiet)) == []


async def test_manifest_that_agrees_with_the_ledger_is_named_in_the_same_line() -> None:
    histories = Histories()
    notes = HistoryWriter(histories, "bucket", Minutes())
    manifest = ExpectedDigest("sha256", "ab", "manifest-sha256.txt")
    await notes.add(found(VerifyOutcome.MATCH), [manifest, CLAIM, ExpectedDigest("md5", "cd", "old.md5")])
    await notes.flush()
    origins = {(event.detail["algorithm"], event.version_id): event.detail["origin"] for event in histories.events}
    assert origins == {("sha256", "null"): "ledger, manifest-sha256.txt", ("md5", None): "old.md5"}


async def test_many_are_written_together_and_the_last_ones_at_the_end() -> None:
    histories = Histories()
    notes = HistoryWriter(histories, "bucket", Minutes())
    for number in range(107):
        await notes.add(Verified(key=f"{number}", outcome=VerifyOutcome.MISSING))
    assert (len(histories.events), histories.most) == (100, 100)
    await notes.flush()
    assert len(histories.events) == 107


async def test_state_that_comes_again_is_noted_though_only_the_ledger_knows_the_version() -> None:
    """A listing of current objects names no version; the ledger's digests are of one."""
    histories, clock = Histories(), Minutes()
    claim = ExpectedDigest("sha256", "AB", "ledger", replace(VERSION, version_id="v1"))
    for state in (VerifyOutcome.UNREADABLE, VerifyOutcome.MATCH, VerifyOutcome.UNREADABLE, VerifyOutcome.UNREADABLE):
        notes = HistoryWriter(histories, "bucket", clock)
        await notes.add(found(state), [claim] if state is VerifyOutcome.MATCH else [])
        await notes.flush()
    assert [event.what for event in histories.events] == ["unreadable", "verified", "unreadable"]


async def test_what_was_being_written_when_it_was_given_up_is_written_by_the_last_flush() -> None:
    histories = Slow()
    notes = HistoryWriter(histories, "bucket", Minutes())
    await notes.add(found(VerifyOutcome.MISMATCH))
    flushing = asyncio.create_task(notes.flush())
    await histories.begun.wait()
    flushing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await flushing
    histories.free.set()
    await notes.flush()
    assert [event.what for event in histories.events] == ["mismatch"]
