"""A verification of several invocations goes on where the last one stopped or died, and counts everything once."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import math
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, cast

import pytest

from auditor.aio.stop import Grace, Stop
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.errors import OutputError, RunComplete, RunTaken
from auditor.ledger.base import Event, Ledger
from auditor.model.target import Target
from auditor.runs.stores.base import Store
from auditor.runs.stores.local import LocalStore
from auditor.runs.stores.s3 import S3Store
from auditor.verify.folder import VerifyCheckpoint, VerifyFolder
from auditor.verify.run import Verification
from auditor.verify.summary import VerifySummary
from tests.support.failing_stores import FullStore, MemoryObjects
from tests.support.samples.reports import RUN
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub_faults import Fault, latency
from tests.support.servers.world import StubBucket
from tests.support.verification import Bench, Verdict, entry

BIG: Final = 3 * 1024 * 1024
FIRST: Final = VerifyCheckpoint(datetime(2026, 1, 2, tzinfo=UTC), None, None)


class Deadline:
    """Stops the invocation when its so many-th object is asked for; a plan of the stub's."""

    def __init__(self, stop: Stop, after: int) -> None:
        self._stop = stop
        self._left = after
        self._loop = asyncio.get_running_loop()

    def __call__(self, operation: str, key: str, nth: int) -> None:
        self._left -= operation == "GetObject"
        if self._left <= 0:  # from the server's thread
            self._loop.call_soon_threadsafe(self._stop.set, "the deadline")


async def all_invocations(bench: Bench, *, stop_after: int, most: int = 60, **settings: Any) -> tuple[Verdict, int]:
    """The last invocation's verdict, and how many there were before it."""
    for number in range(most):
        stop = Stop()
        bench.stub.faults = [Deadline(stop, stop_after)]
        found = await bench.verify(stop=stop, verify_id=RUN, engine="direct", **settings)
        if found.summary["complete"]:
            return found, number
        assert found.summary["resume"]["reason"] == "the deadline"
    pytest.fail("it does not come to an end")


async def test_many_invocations_are_one_verification(bench: Bench, bucket: StubBucket) -> None:
    items = [bench.put(f"k{number:03}", f"{number}".encode()) for number in range(60)]
    await bench.recorded(*items)
    for number in (7, 31, 59):
        bucket.objects.remove(f"k{number:03}")
    items[20].body = b"xx"
    found, earlier = await all_invocations(bench, stop_after=6, concurrency=2)
    assert earlier >= 3
    assert found.outcomes == {"match": 56, "mismatch": 1, "missing": 3}
    assert [one["key"] for one in found.documents] == [f"k{number:03}" for number in range(60)]
    assert {one["outcome"] for one in found.documents if one["key"] in {"k007", "k031", "k059"}} == {"missing"}


async def test_versions_of_a_key_are_counted_once_however_often_it_was_handed_on(
    bench: Bench, bucket: StubBucket
) -> None:
    bucket.versioning = "Enabled"
    items = [bench.put(f"k{number}", f"{number} {version}".encode()) for number in range(4) for version in range(7)]
    await bench.recorded(*items)
    found, earlier = await all_invocations(bench, stop_after=8, concurrency=1, versions=True)
    assert earlier >= 1
    assert found.outcomes == {"match": 28}
    assert sorted((one["key"], one["version_id"]) for one in found.documents) == sorted(
        (item.key, item.version_id) for item in items
    )


class SilentLedger:
    """A ledger whose histories get no answer once the invocation asks for one. With that, its deadline comes."""

    def __init__(self, ledger: Ledger, stop: Stop) -> None:
        self._ledger, self._stop = ledger, stop

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    async def history(self, bucket: str, key: str) -> list[Event]:
        self._stop.set("the deadline")
        return await asyncio.Future()

    async def note(self, bucket: str, events: Sequence[Event]) -> None:
        await asyncio.Future()


@pytest.mark.parametrize("versions", [False, True])
async def test_ledger_that_falls_silent_is_handed_on_with_the_objects_before(
    bench: Bench, bucket: StubBucket, versions: bool
) -> None:
    bucket.versioning = "Enabled" if versions else None
    items = [bench.put(f"k{number}", f"{number} {n}".encode()) for number in range(9) for n in range(1 + 2 * versions)]
    await bench.recorded(*items)
    damaged = items[len(items) // 2]  # with versions the middle one of its key
    damaged.body = b"y" * len(damaged.read())
    stop = Stop(grace=Grace(flight=0.0, sending=0.0, saving=math.inf, all=math.inf))
    silent = Bench(bench.stub, cast(Ledger, SilentLedger(bench.ledger, stop)), bench.out)
    first = await silent.verify(stop=stop, verify_id=RUN, engine="direct", concurrency=1, versions=versions)
    assert not first.summary["complete"]
    assert first.outcomes["match"] == len(first.documents) == 4 * (1 + 2 * versions)
    found = await bench.verify(verify_id=RUN, engine="direct", versions=versions)
    assert found.summary["complete"]
    assert found.outcomes == {"match": len(items) - 1, "mismatch": 1}
    assert sorted((one["key"], one["version_id"]) for one in found.documents) == sorted(
        (item.key, item.version_id) for item in items
    )


async def test_damaged_checkpoint_is_refused(bench: Bench) -> None:
    await bench.recorded(*(bench.put(key) for key in "abc"))
    stop = Stop()
    bench.stub.faults = [Deadline(stop, 2)]
    first = await bench.verify(stop=stop, verify_id=RUN, engine="direct", concurrency=1)
    bench.stub.faults = []
    place = Path(first.summary["out"]) / "state.json"
    whole = json.loads(place.read_text())
    changes: list[dict[str, object]] = [
        {"format": 2},
        {"verify": "20260102T030405Z-ffffff"},
        {"as_of": 7},
        {"parts": -1},
        {"stage": "begun"},
        {"start_after": 7},
        {"unfinished": [[7, None, {}]]},
        {"unfinished": [["a", [], {}]]},
        {"unfinished": [["a", None]]},
        {"tally": {**whole["tally"], "outcomes": {"match": [1, 2]}}},
        {"tally": {**whole["tally"], "listed": 6, "outcomes": {"match": 5}}},
        {"tally": {**whole["tally"], "left": {"GLACIER": 1}}},
        {"tally": {**whole["tally"], "left": {"GLACIER": [1, 2, 3]}}},
    ]
    for change in changes:
        place.write_text(json.dumps(whole | change))
        with pytest.raises(OutputError, match="damaged"):
            await bench.verify(verify_id=RUN)
    place.write_text(json.dumps(whole | {"as_of": whole["as_of"].removesuffix("+00:00")}))  # it is UTC all the same
    assert (await bench.verify(verify_id=RUN, engine="direct")).outcomes == {"match": 3}


class Cut:
    """The invocations of one verification, each in a new store on the same files, as processes are."""

    def __init__(self, bench: Bench, folder: Path | None) -> None:
        self._bench = bench
        self._folder = folder
        self.objects = MemoryObjects()

    def store(self, room: float = math.inf) -> Store:
        """A store that writes so many files, and then none: with the next one, its process is killed."""
        if self._folder is not None:
            return FullStore(self._folder, cast(int, room))
        done = len(self.objects.written)
        self.objects.refuses = lambda number, key: number > done + room
        return S3Store(self.objects, "reports")

    def verification(self, store: Store, stop: Stop | None = None, **more: Any) -> Verification:
        settings = Settings(endpoint_url=self._bench.stub.url, max_rate=None, concurrency=1, engine="direct", **more)
        resources = Resources(store=store, ledger=self._bench.ledger)
        return Verification(Target(BUCKET), settings, resources, Stop() if stop is None else stop, verify_id=RUN)

    def stopped(self, store: Store, after: int) -> Verification:
        """An invocation whose deadline comes with its so many-th object."""
        stop = Stop()
        self._bench.stub.faults = [Deadline(stop, after)]
        return self.verification(store, stop)

    def documents(self) -> list[dict[str, Any]]:
        store = self.store()
        parts = [path for path in store.list(f"bucket={BUCKET}/verify={RUN}/") if "/combined-" in path]
        return [json.loads(line) for path in parts for line in gzip.decompress(store.get(path) or b"").splitlines()]


@pytest.fixture(params=["directory", "bucket"])
def cuts(request: pytest.FixtureRequest, bench: Bench, tmp_path: Path) -> Callable[[int], Cut]:
    """Makes the invocations of a new verification, in a directory or in a bucket; the number tells directories."""
    return lambda number: Cut(bench, tmp_path / f"cut{number}" if request.param == "directory" else None)


async def fill(bench: Bench, bucket: StubBucket, objects: int = 12) -> None:
    items = [bench.put(f"k{number:02}", f"{number}".encode()) for number in range(objects)]
    await bench.recorded(*items)
    items[4].body = b"x"
    bucket.objects.remove("k09")


async def conclude(verification: Verification) -> VerifySummary:
    summary = await verification.run()
    await verification.conclude()
    return summary


@pytest.mark.parametrize("dies", [0, 1, 2], ids=["first", "second", "last"])
async def test_invocation_that_is_killed_before_any_write_leaves_nothing_double(
    bench: Bench, bucket: StubBucket, cuts: Callable[[int], Cut], dies: int
) -> None:
    await fill(bench, bucket)
    deaths = 0
    for room in range(20):
        cut, killed = cuts(room), False
        for number in range(3):
            verification = cut.stopped(cut.store(room if number == dies else math.inf), 4 if number < 2 else 99)
            try:
                summary = await (conclude(verification) if number == 2 else verification.run())
                assert summary.complete is (number == 2)
            except OutputError:
                assert number == dies
                killed = True
        if killed and dies == 2:
            await conclude(cut.stopped(cut.store(), 99))
        with pytest.raises(RunComplete, match="has ended"):
            await cut.verification(cut.store()).run()
        documents = cut.documents()
        assert [one["key"] for one in documents] == [f"k{number:02}" for number in range(12)], room
        assert Counter(one["outcome"] for one in documents) == {"match": 10, "mismatch": 1, "missing": 1}
        told = json.loads(cut.store().get(f"bucket={BUCKET}/verify={RUN}/summary.json") or b"")
        assert Counter(told["outcomes"]) == Counter({"match": 10, "mismatch": 1, "missing": 1})
        assert (told["complete"], told["listed"], told["ledger_only"]) == (True, 11, 1)
        deaths += killed
        if not killed:
            break
    assert deaths >= 4


async def test_parts_of_a_killed_invocation_are_overwritten(tmp_path: Path) -> None:
    for killed, line in ((True, b"killed\n"), (False, b"saved\n"), (True, b"after\n")):
        folder = VerifyFolder(LocalStore(tmp_path), BUCKET, RUN, part_lines=1)
        folder.take_up(FIRST)
        folder.write([line] * 3)
        if not killed:
            folder.put_state(FIRST)
        folder.release()
    found = sorted((tmp_path / folder.path).glob("combined-*"))
    lines = [gzip.decompress(path.read_bytes()) for path in found]
    assert lines == [b""] * 4 + [b"saved\n"] * 3 + [b"after\n"] * 3


async def test_second_of_two_invocations_at_once_stops(
    bench: Bench, bucket: StubBucket, cuts: Callable[[int], Cut]
) -> None:
    await fill(bench, bucket)
    cut = cuts(0)
    both = [conclude(cut.verification(cut.store())) for _ in range(2)]
    one, other = sorted(await asyncio.gather(*both, return_exceptions=True), key=lambda end: isinstance(end, RunTaken))
    assert isinstance(one, VerifySummary)
    assert isinstance(other, RunTaken)
    assert [one["key"] for one in cut.documents()] == [f"k{number:02}" for number in range(12)]


class Overtaken(MemoryObjects):
    """A bucket in which another invocation takes up the verification between the first read of its state and the
    write.
    """

    overtaken = False

    def get(self, key: str) -> tuple[bytes, str]:
        found = super().get(key)
        if not self.overtaken:
            self.overtaken = True
            VerifyFolder(S3Store(self, "reports"), BUCKET, RUN).take_up(FIRST)
        return found


def test_second_of_two_that_take_up_a_state_at_the_same_moment_stops() -> None:
    objects = Overtaken()
    objects.overtaken = True
    VerifyFolder(S3Store(objects, "reports"), BUCKET, RUN).take_up(FIRST)
    objects.overtaken = False
    with pytest.raises(RunTaken, match="taken up by another invocation"):
        VerifyFolder(S3Store(objects, "reports"), BUCKET, RUN).take_up(FIRST)


def test_state_of_an_invocation_whose_verification_was_taken_up_is_refused() -> None:
    objects = MemoryObjects()
    one, other = (VerifyFolder(S3Store(objects, "reports"), BUCKET, RUN) for _ in range(2))
    one.take_up(FIRST)
    other.take_up(FIRST)
    with pytest.raises(RunTaken, match="taken up by another invocation"):
        one.put_state(FIRST)
    other.put_state(FIRST)


class LostAnswers(MemoryObjects):
    """A bucket whose answer to a write is lost, so that the second attempt finds the first one's file."""

    def put(self, key: str, body: bytes | BufferedReader, *, kind: str, md5: str, **condition: str) -> str:
        super().put(key, body, kind=kind, md5=md5, **condition)
        return super().put(key, body, kind=kind, md5=md5, **condition)


def test_write_whose_answer_is_lost_is_the_invocations_own() -> None:
    folder = VerifyFolder(S3Store(LostAnswers(), "reports"), BUCKET, RUN)
    assert folder.take_up(FIRST).fruitless == 1
    folder.put_state(FIRST)
    folder.put_state(FIRST, ended=True)


async def test_invocation_whose_verification_was_taken_up_and_ended_writes_nothing_more(
    bench: Bench, bucket: StubBucket
) -> None:
    await fill(bench, bucket)
    cut = Cut(bench, None)
    asked = threading.Event()

    def first_is_slow(operation: str, key: str, nth: int) -> Fault | None:
        slow = operation == "GetObject" and not asked.is_set()
        if operation == "GetObject":
            asked.set()
        return latency(3) if slow else None

    bench.stub.faults = [first_is_slow]
    slow = asyncio.create_task(cut.verification(cut.store()).run())
    await asyncio.to_thread(asked.wait, 10)
    summary = await conclude(cut.verification(cut.store()))
    held = dict(cut.objects.held)
    assert not slow.done()
    with pytest.raises(RunTaken):
        await slow
    assert cut.objects.held == held
    assert (summary.complete, len(cut.documents())) == (True, 12)


async def test_object_that_a_killed_invocation_read_is_read_again_whatever_is_due(
    bench: Bench, bucket: StubBucket
) -> None:
    await fill(bench, bucket)
    cut = Cut(bench, None)
    with pytest.raises(OutputError):
        await cut.verification(cut.store(1), max_age=90 * 86_400.0).run()
    summary = await conclude(cut.verification(cut.store(), max_age=90 * 86_400.0))
    assert (summary.outcomes["match"], summary.outcomes["not_due"]) == (10, 0)


async def test_invocations_without_progress_are_counted(bench: Bench, bucket: StubBucket) -> None:
    await fill(bench, bucket)
    cut = Cut(bench, None)
    for number in range(1, 4):
        stop = Stop()
        stop.set("the deadline")
        fruitless = cut.verification(cut.store(), stop)
        await fruitless.run()
        assert (fruitless.advanced, fruitless.fruitless) == (False, number)
    with pytest.raises(OutputError):
        await cut.verification(cut.store(1)).run()  # killed before it saved its progress
    further = cut.stopped(cut.store(), 2)
    assert not (await further.run()).complete
    assert (further.advanced, further.fruitless) == (True, 0)


async def test_part_of_an_object_is_kept_by_an_invocation_that_does_not_reach_it(bench: Bench) -> None:
    body = bytes(BIG)
    await bench.recorded(bench.put("large", body))
    cut = Cut(bench, None)
    await cut.stopped(cut.store(), 1).run()
    state = f"bucket={BUCKET}/verify={RUN}/state.json"
    (unfinished,) = json.loads(cut.store().get(state) or b"")["unfinished"]
    stop = Stop()
    stop.set("the deadline")
    await cut.verification(cut.store(), stop).run()
    assert json.loads(cut.store().get(state) or b"")["unfinished"] == [unfinished]
    assert (await conclude(cut.stopped(cut.store(), 99))).outcomes["match"] == 1


def test_parts_are_closed_when_they_are_full(tmp_path: Path) -> None:
    folder = VerifyFolder(LocalStore(tmp_path), BUCKET, "20260102T030405Z-0a1b2c", part_lines=2)
    folder.write([b"1\n", b"2\n", b"3\n"])
    folder.end_part()
    found = sorted((tmp_path / folder.path).glob("combined-*"))
    assert [gzip.decompress(path.read_bytes()) for path in found] == [b"1\n2\n", b"3\n"]


async def test_large_object_is_read_over_several_invocations(bench: Bench) -> None:
    """Each invocation has time for a part of it; what was hashed is carried on, and compared at the end."""
    body = b"".join(hashlib.sha256(f"{number}".encode()).digest() for number in range(BIG // 32))
    good, bad = bench.put("good", body), bench.put("later", body)
    await bench.ledger.record(entry(good))
    await bench.ledger.record(entry(bad))
    bad.body = body[:-1] + bytes([body[-1] ^ 1])
    found, earlier = await all_invocations(bench, stop_after=1, concurrency=1)
    assert earlier >= 1
    assert [(one["key"], one["outcome"]) for one in found.documents] == [("good", "match"), ("later", "mismatch")]
    history = [event.what for event in await bench.ledger.history(BUCKET, "good")]
    assert history.count("verified") == 1
