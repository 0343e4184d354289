"""What a verification writes into the histories of keys: each state when it begins, and many at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from auditor.ledger.base import Event, Known, Version
from auditor.model.digest import VerifyOutcome
from auditor.verify.compare import ExpectedDigest
from auditor.verify.history import HistoryWriter
from auditor.verify.outcome import Verified
from tests.support.fakes.ledger import Hooked
from tests.support.servers.clients import BUCKET
from tests.support.servers.world import StubBucket
from tests.support.verification import Bench, entry, expectation


class Histories:
    """Keeps the events in the order in which they are noted."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    async def note(self, bucket: str, events: Sequence[Event]) -> None:
        self.events += events

    async def history(self, bucket: str, key: str) -> list[Event]:
        return self.events


async def noted(*states: tuple[VerifyOutcome, str], version_id: str = "null") -> list[Event]:
    """The events of as many runs, a day apart. states: outcome and digest of the bytes. version_id: of the ledger."""
    known = Known(digest="AA", source="auditor", recorded_at="", verified_at=None, bytes_read=1)
    version = Version(version_id=version_id, etag="e", size=1, digests={"sha256": known}, first_seen="")
    histories = Histories()
    for day, (outcome, digest) in enumerate(states, 1):
        detail = {"algorithm": "sha256", "found": digest} if outcome is VerifyOutcome.MISMATCH else {}
        notes = HistoryWriter(histories, "bucket", lambda day=day: datetime(2026, 1, day, tzinfo=UTC))  # type: ignore[misc]
        claims = [ExpectedDigest("sha256", "AA", "ledger", version)] if outcome is VerifyOutcome.MATCH else []
        await notes.add(Verified(key="key", outcome=outcome, etag="e", size=1, detail=detail), claims)
        await notes.flush()
    return histories.events


async def test_state_is_noted_once_and_again_after_another_and_each_match() -> None:
    bad, good, gone = (VerifyOutcome.MISMATCH, "bb"), (VerifyOutcome.MATCH, "aa"), (VerifyOutcome.MISSING, "")
    events = await noted(bad, bad, good, good, bad, (VerifyOutcome.MISMATCH, "cc"), (VerifyOutcome.CHANGED, ""), gone)
    states = ["mismatch", "verified", "verified", "mismatch", "mismatch", "changed", "missing"]
    assert [event.what for event in events] == states
    assert {(event.key, event.etag, event.size) for event in events} == {("key", "e", 1)}
    assert events[1].detail == {"algorithm": "sha256", "digest": "aa", "origin": "ledger"}
    assert (events[1].version_id, events[4].detail["found"]) == ("null", "cc")


async def test_state_that_comes_again_is_noted_though_only_the_ledger_knows_the_version() -> None:
    """A listing of current objects names no version; the ledger's digests are of one."""
    bad, good = (VerifyOutcome.UNREADABLE, ""), (VerifyOutcome.MATCH, "aa")
    assert [event.what for event in await noted(bad, good, bad, bad, version_id="v1")] == [
        *("unreadable", "verified", "unreadable")
    ]


async def test_versions_have_states_of_their_own(bench: Bench, bucket: StubBucket) -> None:
    bucket.versioning = "Enabled"
    items = [bench.put("key", body) for body in (b"1", b"2")]
    await bench.recorded(*items)
    for item in items:
        bucket.objects.remove("key", item.version_id or "")
    for _ in range(2):
        await bench.verify(versions=True)
    found = [(event.what, event.version_id) for event in await bench.noted("key")]
    assert sorted(found) == sorted(("missing", item.version_id) for item in items)


async def test_manifest_that_agrees_with_the_ledger_is_named_in_the_same_line(bench: Bench, bucket: StubBucket) -> None:
    bucket.versioning = "Enabled"
    item = bench.put("key")
    await bench.recorded(item)
    await bench.expected(expectation("key", b"data"), expectation("key", b"data", "md5"))
    await bench.verify()
    found = {
        event.detail["algorithm"]: (event.version_id, event.detail["origin"]) for event in await bench.noted("key")
    }
    manifest = "manifest-sha256.txt"
    assert found == {"sha256": (item.version_id, f"ledger, {manifest}"), "md5": (None, manifest)}


class Counting(Hooked):
    """A ledger that keeps the number of events of each call."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench.ledger)
        self.counts: list[int] = []

    async def note(self, bucket: str, events: Sequence[Event]) -> None:
        self.counts.append(len(events))
        await super().note(bucket, events)


async def test_many_are_written_together_and_the_last_ones_at_the_end(bench: Bench, bucket: StubBucket) -> None:
    await bench.ledger.record_many([entry(bench.put(f"{number}")) for number in range(107)])
    for number in range(107):
        bucket.objects.remove(f"{number}")
    ledger = Counting(bench)
    found = await Bench(bench.stub, ledger, bench.out).verify()
    assert (ledger.counts, found.summary["unnoted"]) == ([100, 7], 0)
    assert [event.what for event in await bench.ledger.history(BUCKET, "106")] == ["recorded", "missing"]
