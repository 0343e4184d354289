"""A verification that is handed on goes on where it stopped, in mid-object too, and counts everything once."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast

import pytest

from auditor.aio.stop import Grace, Stop
from auditor.config.resources import Resources
from auditor.config.settings import Settings
from auditor.errors import OutputError, RunTaken
from auditor.ledger.base import Event, Ledger
from auditor.model.target import Target
from auditor.runs.stores.local import LocalStore
from auditor.verify.folder import VerifyFolder
from auditor.verify.run import Hop, Verification
from tests.support.samples.reports import RUN
from tests.support.servers.clients import BUCKET
from tests.support.servers.world import StubBucket
from tests.support.verification import Bench, Verdict, entry

BIG: Final = 3 * 1024 * 1024


class Deadline:
    """Stops the hop when its so many-th object is asked for; a plan of the stub's."""

    def __init__(self, stop: Stop, after: int) -> None:
        self._stop = stop
        self._left = after
        self._loop = asyncio.get_running_loop()

    def __call__(self, operation: str, key: str, nth: int) -> None:
        self._left -= operation == "GetObject"
        if self._left <= 0:  # from the server's thread
            self._loop.call_soon_threadsafe(self._stop.set, "the deadline")


async def all_hops(bench: Bench, *, stop_after: int, most: int = 60, **settings: Any) -> tuple[Verdict, int]:
    """The last hop's verdict, and how many there were before it."""
    verify_id = None
    for number in range(most):
        stop = Stop()
        bench.stub.faults = [Deadline(stop, stop_after)]
        hop = Hop(number=number, verify_id=verify_id, window=5)
        found = await bench.verify(stop=stop, hop=hop, engine="direct", **settings)
        if found.summary["complete"]:
            return found, number
        assert found.summary["resume"]["reason"] == "the deadline"
        verify_id = found.summary["verify"]
    pytest.fail("it does not come to an end")


async def test_many_hops_are_one_verification(bench: Bench, bucket: StubBucket) -> None:
    items = [bench.put(f"k{number:03}", f"{number}".encode()) for number in range(60)]
    await bench.recorded(*items)
    for number in (7, 31, 59):
        bucket.objects.remove(f"k{number:03}")
    items[20].body = b"xx"
    found, hops = await all_hops(bench, stop_after=6, concurrency=2)
    assert hops >= 3
    assert found.outcomes == {"match": 56, "mismatch": 1, "missing": 3}
    assert [one["key"] for one in found.documents] == [f"k{number:03}" for number in range(60)]
    assert {one["outcome"] for one in found.documents if one["key"] in {"k007", "k031", "k059"}} == {"missing"}


async def test_versions_of_a_key_are_counted_once_however_often_it_was_handed_on(
    bench: Bench, bucket: StubBucket
) -> None:
    bucket.versioning = "Enabled"
    items = [bench.put(f"k{number}", f"{number} {version}".encode()) for number in range(4) for version in range(7)]
    await bench.recorded(*items)
    found, hops = await all_hops(bench, stop_after=8, concurrency=1, versions=True)
    assert hops >= 1
    assert found.outcomes == {"match": 28}
    assert sorted((one["key"], one["version_id"]) for one in found.documents) == sorted(
        (item.key, item.version_id) for item in items
    )


class SilentLedger:
    """A ledger whose histories get no answer once the hop asks for one; with that question the hop's deadline comes."""

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
    first = await silent.verify(stop=stop, hop=Hop(window=5), engine="direct", concurrency=1, versions=versions)
    assert not first.summary["complete"]
    assert first.outcomes["match"] == len(first.documents) == 4 * (1 + 2 * versions)
    found = await bench.verify(hop=Hop(number=1, verify_id=first.summary["verify"]), engine="direct", versions=versions)
    assert found.summary["complete"]
    assert found.outcomes == {"match": len(items) - 1, "mismatch": 1}
    assert sorted((one["key"], one["version_id"]) for one in found.documents) == sorted(
        (item.key, item.version_id) for item in items
    )


async def test_what_the_hop_before_left_must_be_there(bench: Bench) -> None:
    first = await bench.verify(hop=Hop())
    with pytest.raises(OutputError, match=r"state-00002\.json is missing or damaged"):
        await bench.verify(hop=Hop(number=3, verify_id=first.summary["verify"]))


async def test_damaged_checkpoint_is_refused(bench: Bench) -> None:
    await bench.recorded(*(bench.put(key) for key in "abc"))
    stop = Stop()
    bench.stub.faults = [Deadline(stop, 2)]
    first = await bench.verify(stop=stop, hop=Hop(), engine="direct", concurrency=1)
    bench.stub.faults = []
    place = Path(first.summary["out"]) / "state-00000.json"
    whole = json.loads(place.read_text())
    second = Hop(number=1, verify_id=first.summary["verify"])
    changes: list[dict[str, object]] = [
        {"format": 2},
        {"verify": "20260102T030405Z-ffffff"},
        {"as_of": 7},
        {"start_after": 7},
        {"unfinished": [{"key": 7, "version_id": None, "checkpoint": {}}]},
        {"unfinished": [{"key": "a", "version_id": [], "checkpoint": {}}]},
        {"tally": {**whole["tally"], "outcomes": {"match": [1, 2]}}},
        {"tally": {**whole["tally"], "listed": 6, "outcomes": {"match": 5}}},
        {"tally": {**whole["tally"], "left": {"GLACIER": 1}}},
        {"tally": {**whole["tally"], "left": {"GLACIER": [1, 2, 3]}}},
    ]
    for change in changes:
        place.write_text(json.dumps(whole | change))
        with pytest.raises(OutputError, match="damaged"):
            await bench.verify(hop=second)
    place.write_text(json.dumps(whole | {"as_of": whole["as_of"].removesuffix("+00:00")}))  # it is UTC all the same
    assert (await bench.verify(hop=second, engine="direct")).outcomes == {"match": 3}


class Conditional(LocalStore):
    """Writes on conditions, as a bucket does."""

    def get_tagged(self, path: str) -> tuple[bytes | None, str | None]:
        raise NotImplementedError

    def put_if(self, path: str, data: bytes, tag: str | None) -> str | None:
        if self.get(path) is not None:
            return None
        self.put(path, data)
        return "tag"

    def put_new_file(self, path: str, local: Path) -> bool:
        self.replace_file(path, local)
        return True


async def test_event_that_comes_twice_is_left_to_the_first(bench: Bench, tmp_path: Path) -> None:
    resources = Resources(store=Conditional(tmp_path), ledger=bench.ledger)
    settings = Settings(endpoint_url=bench.stub.url, max_rate=None)

    async def run() -> None:
        await Verification(Target(BUCKET), settings, resources, Stop(), hop=Hop(first_id=RUN)).run()

    await run()
    with pytest.raises(RunTaken, match=r"hop 0 of .* was started by another invocation"):
        await run()


def test_parts_are_closed_when_they_are_full(tmp_path: Path) -> None:
    folder = VerifyFolder(LocalStore(tmp_path), BUCKET, "20260102T030405Z-0a1b2c", part_lines=2)
    folder.write([b"1\n", b"2\n", b"3\n"])
    folder.end_part()
    found = sorted((tmp_path / folder.path).glob("combined-*"))
    assert [gzip.decompress(path.read_bytes()) for path in found] == [b"1\n2\n", b"3\n"]


async def test_large_object_is_read_over_several_hops(bench: Bench) -> None:
    """Each hop has time for a part of it; what was hashed is carried on, and compared at the end."""
    body = b"".join(hashlib.sha256(f"{number}".encode()).digest() for number in range(BIG // 32))
    good, bad = bench.put("good", body), bench.put("later", body)
    await bench.ledger.record(entry(good))
    await bench.ledger.record(entry(bad))
    bad.body = body[:-1] + bytes([body[-1] ^ 1])
    found, hops = await all_hops(bench, stop_after=1, concurrency=1)
    assert hops >= 1
    assert [(one["key"], one["outcome"]) for one in found.documents] == [("good", "match"), ("later", "mismatch")]
    history = [event.what for event in await bench.ledger.history(BUCKET, "good")]
    assert history.count("verified") == 1
