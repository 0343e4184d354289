"""A verification of many hops scans its ledger once: later hops read their range, and what was written since."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from auditor.aio.stop import Stop
from auditor.aws.client import ThreadedClient, open_client
from auditor.errors import OutputError
from auditor.ledger.base import Event, KeyRecord
from auditor.ledger.dynamodb.ledger import DynamoLedger
from auditor.ledger.dynamodb.scanning import SEGMENTS
from auditor.ledger.snapshot import SnapshotLine
from auditor.model.target import Target
from auditor.runs.stores.local import LocalStore
from auditor.verify.ledger_snapshot import LedgerSnapshot
from auditor.verify.run import Hop
from tests.conformance.ledgers.base import ENTRY, ODD_KEYS, all_subjects
from tests.ledger.conftest import new_table
from tests.ledger.test_shards import Seen
from tests.ledger.throttled import at_once
from tests.support.fakes.ledger import Hooked
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket
from tests.support.verification import Bench, entry, now
from tests.verify.test_hops import Deadline


class Scanned(Hooked):
    """A ledger that takes itself for one without an order. scans: how often it was exported. asked: keys of subject().

    Its lines are numbers; the records stay in memory.
    """

    scanned = True

    def __init__(self, *values: Any) -> None:
        super().__init__(*values)
        self.scans = 0
        self.asked: list[str] = []
        self.records: list[KeyRecord] = []

    async def exported(
        self, bucket: str, prefix: str = "", start_after: str = ""
    ) -> AsyncGenerator[list[SnapshotLine], None]:
        self.scans += 1
        async for record in self.inner.subjects(bucket, prefix, start_after):
            self.records.append(record)
            yield [(record.key, b"%d\n" % (len(self.records) - 1))]

    async def imported(self, bucket: str, lines: Sequence[bytes]) -> list[KeyRecord]:
        return [self.records[int(line)] for line in lines]

    async def subject(self, bucket: str, key: str) -> KeyRecord | None:
        self.asked.append(key)
        return await self.inner.subject(bucket, key)


@pytest.fixture
def scanned(bench: Bench) -> tuple[Bench, Scanned]:
    ledger = Scanned(bench.ledger)
    return Bench(bench.stub, ledger, bench.out), ledger


def snapshot_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and "ledger" in str(path.relative_to(folder))]


async def hop(
    bench: Bench, number: int, verify_id: str | None, *, stop_after: int | None = None, **settings: Any
) -> Any:
    stop = Stop()
    bench.stub.faults = [] if stop_after is None else [Deadline(stop, stop_after)]
    settings = {"engine": "direct", "concurrency": 1, **settings}
    return await bench.verify(stop=stop, hop=Hop(number=number, verify_id=verify_id, window=3), **settings)


async def test_table_is_scanned_once_in_all_hops(stub: StubServer, tmp_path: Path, moto_url: str) -> None:
    name = await new_table(moto_url, shards=False)
    async with open_client("dynamodb", threads=16, region=None, endpoint_url=moto_url, profile=None) as client:
        seen = Seen(client)
        ledger = DynamoLedger(name, cast(ThreadedClient, seen))
        await ledger.probe()
        bench = Bench(stub, ledger, tmp_path / "out")
        items = [bench.put(f"k{number:02}", b"%d" % number) for number in range(24)]
        await bench.recorded(*items)
        stub.world.buckets[BUCKET].objects.remove("k20")
        items[22].body = b"xx"
        scans: list[int] = []
        verify_id, number = None, 0
        while True:
            seen.asked = Counter()
            found = await hop(bench, number, verify_id, stop_after=8)
            scans.append(seen.asked["Scan"])
            verify_id, number = found.summary["verify"], number + 1
            if found.summary["complete"]:
                break
            folder = Path(found.summary["out"])
            assert json.loads((folder / "ledger.json").read_bytes())["parts"] == [{"last": "k23", "lines": 24}]
        assert len(scans) >= 3
        assert scans == [SEGMENTS] + [0] * (len(scans) - 1)
        assert found.outcomes == {"match": 22, "mismatch": 1, "missing": 1}
        assert snapshot_files(folder) == []


async def test_table_that_is_given_shards_between_two_hops_leaves_no_snapshot(
    stub: StubServer, tmp_path: Path, moto_url: str
) -> None:
    name = await new_table(moto_url, shards=False)
    async with open_client("dynamodb", threads=16, region=None, endpoint_url=moto_url, profile=None) as client:
        ledger = DynamoLedger(name, client, sleep=at_once)
        await ledger.probe()
        bench = Bench(stub, ledger, tmp_path / "out")
        await bench.recorded(*(bench.put(f"k{number:02}", b"%d" % number) for number in range(20)))
        first = await hop(bench, 0, None, stop_after=8)
        assert snapshot_files(Path(first.summary["out"]))
        assert await ledger.give_shards(lambda part: None, lambda: False)
        found = await hop(bench, 1, first.summary["verify"])
        assert found.outcomes == {"match": 20}
        assert snapshot_files(Path(found.summary["out"])) == []


async def test_lines_of_a_table_give_the_records_of_its_keys(moto_url: str) -> None:
    name = await new_table(moto_url, shards=False)
    async with open_client("dynamodb", threads=16, region=None, endpoint_url=moto_url, profile=None) as client:
        ledger = DynamoLedger(name, client)
        await ledger.probe()
        keys = ODD_KEYS[:8]
        await ledger.record_many([replace(ENTRY, key=key, version_id=one) for key in keys for one in (None, "v1")])
        await ledger.note("bucket", [Event(key=keys[0], at="2026-02", what="retired")])
        lines = [one async for page in ledger.exported("bucket") for one in page]
        records = await ledger.imported("bucket", [line for _, line in lines])
        assert records == await all_subjects(ledger)
        assert [key for key, _ in lines] == [one.key for one in records] == sorted(keys)
        assert all(line.isascii() and line.count(b"\n") == 1 for _, line in lines)
        later = [key async for page in ledger.exported("bucket", "n", "nai") for key, _ in page]
        assert later == [key for key in sorted(keys) if key.startswith("n") and key > "nai"]


async def test_only_the_first_hop_reads_the_whole_ledger(scanned: tuple[Bench, Scanned]) -> None:
    bench, ledger = scanned
    await bench.recorded(*(bench.put(f"k{number:02}", b"x") for number in range(20)))
    first = await hop(bench, 0, None, stop_after=8)
    found = await hop(bench, 1, first.summary["verify"])
    assert found.outcomes == {"match": 20}
    assert (ledger.scans, ledger.asked) == (1, [])


async def test_ledger_in_order_and_a_single_process_take_no_snapshot(
    bench: Bench, scanned: tuple[Bench, Scanned]
) -> None:
    await bench.recorded(bench.put("k", b"x"))
    found = await hop(bench, 0, None)
    assert snapshot_files(Path(found.summary["out"])) == []
    assert (await scanned[0].verify()).outcomes == {"match": 1}
    assert scanned[1].scans == 0


async def test_what_was_written_since_the_snapshot_counts(scanned: tuple[Bench, Scanned], bucket: StubBucket) -> None:
    bench, ledger = scanned
    items = {key: bench.put(key, key.encode()) for key in ("a0", "a1", "a2", "deleted", "lost", "missing", "retired")}
    items["overwritten"] = bench.put("overwritten", b"before")
    await bench.recorded(*items.values())
    first = await hop(bench, 0, None, stop_after=1)
    assert not first.summary["complete"]
    for key in ("deleted", "missing", "retired"):
        bucket.objects.remove(key)
    await bench.deleted("deleted")
    await ledger.note(BUCKET, [Event(key="retired", at="2026-02-01T00:00:00Z", what="retired")])
    await bench.recorded(bench.put("overwritten", b"after"), bench.put("new", b"new", last_modified=now()))
    bench.put("lost", b"other bytes")
    last = await hop(bench, 1, first.summary["verify"])
    found = {one["key"]: one["outcome"] for one in last.documents if one["outcome"] != "lost"}
    assert found == {
        **dict.fromkeys(("a0", "a1", "a2", "new", "overwritten"), "match"),
        "deleted": "deleted",
        "lost": "changed",
        "missing": "missing",
        "retired": "retired",
    }
    assert last.outcomes["lost"] == 2  # of "lost" and, for its earlier bytes, of "overwritten"
    assert set(ledger.asked) == {"deleted", "lost", "missing", "new", "overwritten", "retired"}


async def test_range_and_prefix_are_those_of_the_target(scanned: tuple[Bench, Scanned], bucket: StubBucket) -> None:
    bench, _ = scanned
    await bench.recorded(*(bench.put(f"{folder}/{number}", b"x") for folder in "abc" for number in range(6)))
    for key in ("a/5", "b/0", "b/3", "b/5", "c/0"):
        bucket.objects.remove(key)
    target = Target(BUCKET, "b/", start_after="b/0", stop_at="b/4")
    first = await hop(bench, 0, None, stop_after=1, target=target)
    last = await hop(bench, 1, first.summary["verify"], target=target)
    assert last.outcomes == {"match": 3, "missing": 1}


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def _of_fewer_lines(path: Path) -> None:
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(lines[1:])))


def _of_other_lines(path: Path) -> None:
    count = len(gzip.decompress(path.read_bytes()).splitlines())
    path.write_bytes(gzip.compress(b"no line\n" * count))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("ledger/part-00000.jsonl.gz", Path.unlink),
        ("ledger/part-00000.jsonl.gz", _cut),
        ("ledger/part-00000.jsonl.gz", _of_fewer_lines),
        ("ledger/part-00000.jsonl.gz", _of_other_lines),
        ("ledger.json", lambda path: path.write_text("[]")),
        ("ledger.json", lambda path: path.write_text('{"v": 2, "taken_at": "2026-01-01T00:00:00Z", "parts": []}')),
        ("ledger.json", lambda path: path.write_text('{"v": 1, "taken_at": "then", "parts": []}')),
        ("ledger.json", lambda path: path.write_text('{"v": 1, "taken_at": "2026-01-01T00:00:00Z", "parts": [7]}')),
    ],
)
async def test_damaged_snapshot_is_refused(
    scanned: tuple[Bench, Scanned], name: str, damage: Callable[[Path], object]
) -> None:
    bench, _ = scanned
    await bench.recorded(*(bench.put(f"k{number}", b"x") for number in range(6)))
    first = await hop(bench, 0, None, stop_after=1)
    damage(Path(first.summary["out"]) / name)
    with pytest.raises(OutputError, match=rf"{name} is not there or damaged: verify again"):
        await hop(bench, 1, first.summary["verify"])


async def test_snapshot_that_was_not_finished_is_taken_anew(scanned: tuple[Bench, Scanned]) -> None:
    """A process that was killed left parts without an index."""
    bench, ledger = scanned
    await bench.recorded(*(bench.put(f"k{number}", b"x") for number in range(6)))
    first = await hop(bench, 0, None, stop_after=2)
    folder = Path(first.summary["out"])
    (folder / "ledger.json").unlink()
    _of_other_lines(folder / "ledger" / "part-00000.jsonl.gz")
    last = await hop(bench, 1, first.summary["verify"])
    assert (last.outcomes, ledger.scans) == ({"match": 6}, 2)


async def test_what_killed_verifications_left_of_their_snapshots_is_deleted(scanned: tuple[Bench, Scanned]) -> None:
    bench, _ = scanned
    await bench.recorded(*(bench.put(f"k{number}", b"x") for number in range(6)))
    first = await hop(bench, 0, None, stop_after=2)
    folder = Path(first.summary["out"])
    old, young = folder.parent / "verify=20260102T030405Z-0a1b2c", folder.parent / f"{folder.name[:-6]}ffffff"
    beside = [old / "summary.json", old / "combined-00000-00000.jsonl.gz", folder.parent / "run=x" / "ledger.json"]
    parts = [one / "ledger" / f"part-{number:05}.jsonl.gz" for one in (old, young, folder) for number in (5, 6)]
    for path in (*beside, old / "ledger.json", *parts):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    last = await hop(bench, 1, first.summary["verify"])
    assert last.summary["complete"]
    assert snapshot_files(folder) == snapshot_files(old) == []
    assert len(snapshot_files(young)) == 2, "that verification may be under way"
    assert all(path.exists() for path in beside)


async def test_snapshot_of_many_parts_is_read_from_the_part_of_the_first_key(tmp_path: Path) -> None:
    read: list[str] = []

    class Store(LocalStore):
        def get(self, path: str) -> bytes | None:
            read.append(path)
            return super().get(path)

    class Wide:
        scanned = True

        async def exported(self, bucket: str, prefix: str = "", start_after: str = "") -> AsyncGenerator[Any, None]:
            for number in range(40):
                yield [(f"k{number:02}", b"%02d%s\n" % (number, b"x" * 500_000))]

        async def imported(self, bucket: str, lines: Sequence[bytes]) -> list[KeyRecord]:
            return [KeyRecord(key=f"k{line[:2].decode()}", versions=()) for line in lines]

    async def in_thread(work: Callable[..., Any], *args: Any) -> Any:
        return work(*args)

    def snapshot() -> LedgerSnapshot:
        return LedgerSnapshot(Store(tmp_path), "verify", BUCKET, Wide(), in_thread)

    assert [one.key async for one in snapshot().records("", "")] == [f"k{number:02}" for number in range(40)]
    read.clear()
    assert [one.key async for one in snapshot().records("", "k29")] == [f"k{number:02}" for number in range(30, 40)]
    assert read == ["verify/ledger.json", *(f"verify/ledger/part-0000{number}.jsonl.gz" for number in (3, 4))]


async def test_entry_that_says_lost_by_the_snapshot_alone_is_left_out(
    scanned: tuple[Bench, Scanned], bucket: StubBucket
) -> None:
    """The same bytes were written again under another ETag, and recorded, after the snapshot."""
    bench, ledger = scanned
    items = [bench.put(f"k{number}", b"same") for number in range(4)]
    await bench.recorded(*items)
    first = await hop(bench, 0, None, stop_after=1)
    again = bench.put("k3", b"same", etag="another")
    await ledger.record(replace(entry(again), etag="another"))
    last = await hop(bench, 1, first.summary["verify"])
    assert last.outcomes == {"match": 4}
