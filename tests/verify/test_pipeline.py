"""The walk over all pairs: what is read, what is handed on, and when it says that it came to the end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from auditor.aio.budget import InFlightBudget
from auditor.aio.stop import Stop
from auditor.hashing.digest.result import Paused
from auditor.hashing.queue.message import HashTask
from auditor.ledger.base import Event, KeyRecord, Known, Version
from auditor.model.digest import VerifyOutcome
from auditor.model.object import ObjectRef
from auditor.verify.compare import Comparison, ReadRequest
from auditor.verify.due import DAY, Schedule, due_of
from auditor.verify.history import HistoryWriter
from auditor.verify.merge import Pair
from auditor.verify.outcome import Verified
from auditor.verify.pipeline import Done, ReadPolicy, Walk
from auditor.verify.read import ReadResult

LONG_AGO = "2026-01-01T00:00:00Z"
NOW = datetime(2026, 6, 1, tzinfo=UTC)
SHA, OTHER = "aa" * 32, "bb" * 32
KNOWN = Known(digest=SHA, source="auditor", recorded_at=LONG_AGO, verified_at=None, bytes_read=5)
EVERYTHING = Schedule("everything")


def pair(key: str, *, known: bool = True, listed: bool = True, damage: tuple[str, ...] = (), **ref: Any) -> Pair:
    version = Version(version_id="null", etag="e", size=5, digests={"sha256": KNOWN}, first_seen=LONG_AGO)
    subject = KeyRecord(key=key, versions=(version,), damage=damage) if known else None
    if not listed:
        return Pair(key, None, subject, absent=True)
    return Pair(key, ObjectRef(key, "e", 5, LONG_AGO, **ref), subject, listed_at="2026-05-31T00:00:00Z")


@dataclass
class Run:
    """One walk, with the results that it handed on and the events that it noted. found: the digest of each key that
    is read; None: the read is paused.
    """

    found: Mapping[str, str | None] = field(default_factory=dict)
    lines: Sequence[Event] = ()
    absent: VerifyOutcome | None = VerifyOutcome.MISSING
    accept_cost: bool = False
    due: Schedule = EVERYTHING
    limit: Callable[[], bool] = lambda: False
    whole_keys: bool = False
    done: list[Done] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    noted: list[Event] = field(default_factory=list)
    stop: Stop = field(default_factory=Stop)

    async def of(self, *batches: Sequence[Pair]) -> bool:
        policy = ReadPolicy(judge=Comparison(in_flight_from="9"), due=self.due, now=NOW, accept_cost=self.accept_cost)
        walk = Walk(
            policy,
            self._ask,
            self._absent,
            HistoryWriter(self, "bucket"),
            InFlightBudget(1, 100),
            self.stop,
            self._sink,
            weight=lambda size: size,
            limit=self.limit,
            whole_keys=self.whole_keys,
        )
        return await walk.all(self._pairs(batches))

    def outcomes(self) -> dict[str, str]:
        return {one.key: one.answer.verified.outcome.value for one in self.done if one.answer is not None}

    async def _pairs(self, batches: Sequence[Sequence[Pair]]) -> AsyncGenerator[list[Pair], None]:
        for batch in batches:
            yield [*batch]

    async def _ask(self, request: ReadRequest) -> ReadResult | Paused:
        key = request.ref.key
        self.read.append(key)
        digest = self.found.get(key, SHA)
        if digest is None:
            return Paused(HashTask(key, None, "e", 5), {}, 0)
        return ReadResult(request.compare({"sha256": digest}), 5)

    async def _absent(self, pair: Pair) -> Verified | None:
        return None if self.absent is None else Verified(key=pair.key, outcome=self.absent, listed=False)

    async def _sink(self, done: Done) -> None:
        self.done.append(done)

    async def note(self, bucket: str, events: Sequence[Event]) -> None:
        self.noted += events

    async def history(self, bucket: str, key: str) -> list[Event]:
        return [one for one in self.lines if one.key == key]


def recorded(key: str, digest: str) -> Event:
    detail = {"algorithm": "sha256", "digest": digest}
    return Event(key=key, at=LONG_AGO, what="recorded", etag="e", size=5, detail=detail)


async def test_every_pair_has_its_outcome_in_order_and_its_line() -> None:
    run = Run(found={"b": OTHER})
    pairs = [pair("a"), pair("b"), pair("c", known=False), pair("d", listed=False)]
    markers = Pair("e", None, None, delete_markers=2)
    assert await run.of(pairs[:3], [pairs[3], markers])
    assert run.outcomes() == {"a": "match", "b": "mismatch", "c": "new", "d": "missing"}
    assert run.done[-1] == Done("e", None, 2)
    assert [(event.key, event.what) for event in run.noted] == [("a", "verified"), ("b", "mismatch"), ("d", "missing")]
    assert run.read == ["a", "b"]


async def test_delete_markers_before_an_object_are_handed_on_with_it() -> None:
    run, other = Run(), pair("b")
    assert other.ref is not None
    pairs = [pair("a"), replace(other, ref=replace(other.ref, size=6)), pair("c", known=False)]
    assert await run.of([replace(one, delete_markers=number) for number, one in enumerate(pairs, 1)])
    assert run.outcomes() == {"a": "match", "b": "mismatch", "c": "new"}
    assert [one.delete_markers for one in run.done] == [1, 2, 3]


async def test_nothing_is_handed_on_after_the_first_paused_object() -> None:
    run = Run(found={"b": None})
    assert not await run.of([pair("a"), pair("b"), pair("c")])
    assert run.outcomes() == {"a": "match"}


@pytest.mark.parametrize(
    ("ref", "accept_cost", "outcome"),
    [
        ({"storage_class": "GLACIER"}, False, "archived"),
        ({"storage_class": "GLACIER", "restored": True}, False, "match"),
        ({"storage_class": "STANDARD_IA"}, False, "left_for_cost"),
        ({"storage_class": "STANDARD_IA"}, True, "match"),
    ],
)
async def test_object_is_read_unless_its_storage_class_forbids_it(
    ref: dict[str, Any], accept_cost: bool, outcome: str
) -> None:
    run = Run(accept_cost=accept_cost)
    assert await run.of([pair("a", **ref)])
    assert run.outcomes() == {"a": outcome}
    (done,) = run.done
    assert done.answer is not None
    assert outcome == "match" or done.answer.verified.detail == {"storage_class": ref["storage_class"]}


async def test_object_that_is_not_due_is_not_read() -> None:
    run = Run(due=due_of(None, 1.0, DAY))
    fresh = replace(KNOWN, verified_at="2026-05-31T23:59:59Z")
    known = pair("a")
    assert known.subject is not None
    version = replace(known.subject.versions[0], digests={"sha256": fresh})
    assert await run.of([replace(known, subject=replace(known.subject, versions=(version,)))])
    assert (run.outcomes(), run.read) == ({"a": "not_due"}, [])


async def test_each_version_has_its_own_turn() -> None:
    run, lately = Run(due=due_of(None, 10.0, DAY)), "2026-05-27T00:00:00Z"
    known = pair("a")
    assert known.subject is not None
    version = replace(known.subject.versions[0], digests={"sha256": replace(KNOWN, verified_at=lately)})
    subject = replace(known.subject, versions=(version,))
    names = [f"v{number}" for number in range(30)]
    assert await run.of([replace(pair("a", version_id=name), subject=subject) for name in names])
    outcomes = [one.answer.verified.outcome.value for one in run.done if one.answer is not None]
    assert outcomes == ["match" if run.due.due("a", name, lately, NOW) else "not_due" for name in names]
    assert len(set(outcomes)) == 2


async def test_object_that_is_read_too_late_says_by_how_many_seconds() -> None:
    run = Run(due=Schedule("", runs=1, limit=60.0))
    assert await run.of([pair("a")])
    (done,) = run.done
    assert done.late > 86_400


@pytest.mark.parametrize(
    ("digest", "outcome", "what"),
    [(OTHER, "match", []), ("cc" * 32, "ledger_fault", []), (SHA, "mismatch", ["mismatch"])],
)
async def test_mismatch_is_compared_with_the_history_of_the_key(digest: str, outcome: str, what: list[str]) -> None:
    run = Run(found={"a": OTHER}, lines=[recorded("a", digest)])
    assert await run.of([pair("a")])
    assert run.outcomes() == {"a": outcome}
    assert [event.what for event in run.noted if event.what != "verified"] == what
    assert [event for event in run.noted if event.what == "verified"] == [], "no row of the ledger is verified"
    (done,) = run.done
    assert done.answer is not None
    if outcome == "ledger_fault":
        assert done.answer.verified.detail["ledger"] == "damaged: its row and its history differ"


async def test_damage_is_told_with_any_outcome(caplog: pytest.LogCaptureFixture) -> None:
    run = Run()
    wrong_size = pair("b", damage=("one", "two"))
    assert wrong_size.ref is not None
    pairs = [pair("a", damage=("one",)), replace(wrong_size, ref=replace(wrong_size.ref, size=6))]
    archived = pair("c", damage=("three",), storage_class="GLACIER")
    assert await run.of([*pairs, archived])
    assert run.outcomes() == {"a": "match", "b": "mismatch", "c": "archived"}
    said = [one.answer.verified.detail["ledger"] for one in run.done if one.answer is not None]
    assert said == ["damaged: one", "damaged: one; two", "damaged: three"]
    assert "the ledger's entry of a is damaged (one)" in caplog.text


async def test_loss_is_noted_later_and_no_outcome_is_no_result() -> None:
    run = Run(absent=VerifyOutcome.LOST)
    assert await run.of([pair("a", listed=False)])
    assert (run.outcomes(), run.noted) == ({"a": "lost"}, [])
    run = Run(absent=None)
    assert await run.of([pair("a", listed=False)])
    assert run.done == [Done("a", None)]


async def test_object_that_is_listed_after_its_deletion_is_noted() -> None:
    again = pair("a")
    assert again.subject is not None
    run = Run()
    assert await run.of([replace(again, subject=replace(again.subject, deleted_at=LONG_AGO))])
    assert [event.what for event in run.noted] == ["listed", "verified"]


@pytest.mark.parametrize("settled", [False, True])
async def test_absent_key_that_the_record_settles_needs_no_turn(settled: bool) -> None:
    gone = pair("a", listed=False)
    assert gone.subject is not None
    subject = replace(gone.subject, deleted_at=LONG_AGO) if settled else gone.subject
    run = Run(absent=VerifyOutcome.DELETED)
    assert await run.of([replace(gone, subject=subject)])
    assert run.outcomes() == {"a": "deleted"}


async def test_limit_of_calls_ends_the_walk_between_two_keys() -> None:
    limits = iter([False, True, True])
    run = Run(limit=lambda: next(limits))
    assert not await run.of([pair("a", version_id="null"), pair("a", version_id="null"), pair("b")])
    assert [one.key for one in run.done] == ["a", "a"]
    assert run.stop.reason == "the limit of --max-calls was reached"


@pytest.mark.parametrize("whole_keys", [False, True])
async def test_stop_between_two_pages_of_a_key(whole_keys: bool) -> None:
    run = Run(whole_keys=whole_keys)

    def stop() -> bool:
        run.stop.set("enough")
        return False

    run.limit = stop
    assert not await run.of([pair("a", version_id="null")], [pair("a", version_id="null"), pair("b")])
    assert [one.key for one in run.done] == (["a", "a"] if whole_keys else ["a"])
