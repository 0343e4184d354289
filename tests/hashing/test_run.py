"""`auditor hash` ends where --max-calls or a stop says, between two keys, and says that it is not complete."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from auditor.aio.stop import Stop
from auditor.config.settings import Settings
from auditor.hashing.run import BATCH, HashRun, HashRunSummary
from auditor.ledger import open_ledger
from auditor.ledger.base import Ledger
from auditor.model.target import Target
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer


@pytest.fixture
async def ledger() -> AsyncIterator[Ledger]:
    async with open_ledger("sqlite::memory:") as opened:
        yield opened


async def hash_all(
    stub: StubServer, ledger: Ledger, stop: Stop, *, versions: bool = False, max_calls: int | None = None
) -> HashRunSummary:
    settings = Settings(endpoint_url=stub.url, max_rate=None, max_calls=max_calls)
    return await HashRun(Target(BUCKET, versions=versions), settings, ledger, stop).run()


def stop_at_the_first_read(stub: StubServer, stop: Stop) -> None:
    def watch(operation: str, key: str, nth: int) -> None:
        if operation == "GetObject":
            stop.set("stopped by a test")

    stub.faults = [watch]


async def test_every_listed_page_is_hashed_and_the_limit_is_named(stub: StubServer, ledger: Ledger) -> None:
    for number in range(1010):
        stub.put(BUCKET, f"{number:04}", b"data")
    stop = Stop()
    summary = await hash_all(stub, ledger, stop, max_calls=1)
    assert (summary.hashing.hashed_now, summary.complete) == (1000, False)
    assert stop.reason == "the limit of --max-calls was reached (MaxCalls)"
    rest = await hash_all(stub, ledger, Stop())
    assert (rest.hashing.known, rest.hashing.hashed_now, rest.complete) == (1000, 10, True)


async def test_stop_ends_the_run_after_the_batch_in_hand(stub: StubServer, ledger: Ledger) -> None:
    for number in range(BATCH + 1):
        stub.put(BUCKET, f"{number:04}", b"data")
    stop = Stop()
    stop_at_the_first_read(stub, stop)
    summary = await hash_all(stub, ledger, stop)
    assert (summary.hashing.hashed_now, summary.complete) == (BATCH, False)


async def test_versions_of_a_begun_key_are_hashed_to_the_last(stub: StubServer, ledger: Ledger) -> None:
    stub.world.buckets[BUCKET].versioning = "Enabled"
    for number in range(BATCH + 7):
        stub.put(BUCKET, "many", b"%d" % number)
    stub.put(BUCKET, "next", b"data")
    stop = Stop()
    stop_at_the_first_read(stub, stop)
    summary = await hash_all(stub, ledger, stop, versions=True)
    assert (summary.hashing.hashed_now, summary.complete) == (BATCH + 7, False)
