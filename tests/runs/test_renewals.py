"""Renewals: refused if damaged, and deleted once the last complete run of every target began after them."""

from __future__ import annotations

import gzip
import tracemalloc
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from auditor.config.layers import Layer, resolve
from auditor.errors import OutputError
from auditor.model.target import Target
from auditor.runs.paths import bucket_path, new_run_id
from auditor.runs.reading import update_latest_json
from auditor.runs.renewals import SPARED, delete_outdated, read_renewals, renewal_files, write_renewals
from auditor.runs.stores.local import LocalStore
from tests.support.nights import Nights
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket

NOON: Final = datetime(2027, 3, 9, 12, tzinfo=UTC)
HOUR: Final = timedelta(hours=1)


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def write(store: LocalStore, *moments: datetime) -> None:
    for number, moment in enumerate(moments):
        write_renewals(store, BUCKET, moment, number.to_bytes(3, "big"), [], sure=True)


def complete(store: LocalStore, target: str, moment: datetime) -> None:
    update_latest_json(store, Target(BUCKET, target), new_run_id(moment, b"abc"))


def left(store: LocalStore) -> list[str]:
    return [at for at, _ in renewal_files(store, BUCKET, "")]


def test_what_every_targets_last_run_began_after_is_deleted(store: LocalStore) -> None:
    spared = NOON - SPARED
    write(store, spared - HOUR, spared - timedelta(seconds=1), spared, NOON - HOUR, NOON + HOUR)
    for name in ("notes.txt", "20270101T000000Z-aaaaaa.csv", "mine.jsonl.gz"):  # no other file is deleted
        store.put(f"{bucket_path(BUCKET)}/renewals/{name}", b"")
    assert delete_outdated(store, BUCKET) == 0  # no run is complete
    complete(store, "whole", NOON)
    complete(store, "prefix", NOON - timedelta(days=30))
    assert delete_outdated(store, BUCKET) == 0  # the other target's next run takes them in
    complete(store, "prefix", NOON + HOUR)
    assert delete_outdated(store, BUCKET) == 2
    assert left(store) == ["2027-03-08T12:00:00Z", "2027-03-09T11:00:00Z", "2027-03-09T13:00:00Z"]
    assert delete_outdated(store, BUCKET) == 0
    assert len(store.list(f"{bucket_path(BUCKET)}/renewals/")) == 3 + 3


def test_failure_fails_no_run_and_is_said(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(self: LocalStore, path: str) -> None:
        raise OutputError("the disk is read-only")

    write(store, NOON - timedelta(days=9))
    complete(store, "whole", NOON)
    monkeypatch.setattr(LocalStore, "delete", refused)
    assert delete_outdated(store, BUCKET) == 0
    assert f"outdated renewals of the bucket {BUCKET} were not all deleted: the disk is read-only" in caplog.text


async def test_a_night_that_keeps_facts_deletes_what_the_one_before_took_in(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    bucket.put("k", b"x")
    nights = Nights(stub, tmp_path, only=("O02",), keep=resolve([Layer({"keep": "acl=9d"}, str)]).keep)
    store = LocalStore(tmp_path)
    write(store, datetime.fromtimestamp(nights.now, UTC) - timedelta(days=30))
    await nights.night(keep=None)
    assert len(left(store)) == 1  # it keeps nothing, and so reads no renewal
    await nights.night()
    assert left(store) == []


NAME: Final = "20270102T030405Z-0a1b2c.jsonl.gz"


def written(out: Path, data: bytes) -> LocalStore:
    folder = out / "bucket=audited" / "renewals"
    folder.mkdir(parents=True)
    (folder / NAME).write_bytes(data)
    return LocalStore(out)


def test_a_damaged_file_or_line_is_named(tmp_path: Path) -> None:
    texts = ("[]", "{}", "NaN", "[" * 1000, '"', '{"object":9e999}')
    damaged = [b"no gzip", gzip.compress(b"{}", mtime=0)[:-6], *(gzip.compress(text.encode()) for text in texts)]
    for number, data in enumerate(damaged):
        with pytest.raises(OutputError, match=f"renewals/{NAME} is damaged"):
            read_renewals(written(tmp_path / str(number), data), "audited", "")


def test_a_small_file_of_very_many_lines_takes_no_memory(tmp_path: Path) -> None:
    store = written(tmp_path, gzip.compress(b"\n" * 1_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(OutputError, match="is damaged"):
            read_renewals(store, "audited", "")
        assert tracemalloc.get_traced_memory()[1] < 800_000
    finally:
        tracemalloc.stop()
