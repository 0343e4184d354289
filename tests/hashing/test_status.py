"""Hashing in the audit's own process: one object's trouble stays its own, and the ceilings hold."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from auditor.aio.budget import InFlightBudget
from auditor.errors import CallFailed
from auditor.hashing.digest.options import HashOptions
from auditor.hashing.in_process import InProcessHasher
from auditor.hashing.limits import BYTES_IN_FLIGHT, MIB
from auditor.hashing.status import HashStatus, HashStatusFinder
from auditor.ledger import open_ledger
from auditor.ledger.base import Entry, Ledger
from auditor.model.object import Evidence, ObjectRef, Skipped
from auditor.s3.paced_reads import PacedReads
from auditor.s3.rate import RateLimit
from tests.support.audit_runs import audit
from tests.support.fakes.hashing import CountedRate, Store, etag_of
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import Fault, latency

NOT_ASKED = Skipped("not asked")


@pytest.fixture
async def ledger() -> AsyncIterator[Ledger]:
    async with open_ledger("sqlite::memory:") as opened:
        yield opened


def hasher_of(
    store: Store, ledger: Ledger, executor: ThreadPoolExecutor, rate: RateLimit | None = None, attempts: int = 3
) -> InProcessHasher:
    options = HashOptions(
        bucket="bucket",
        buffer_size=1024,
        executor=executor,
        memory=InFlightBudget(2, BYTES_IN_FLIGHT),
        attempts=attempts,
    )
    return InProcessHasher(PacedReads(store, rate or RateLimit(None)), ledger, ("sha256", "sha1"), options)


def evidence_of(store: Store, key: str) -> Evidence:
    data = store.objects[key]
    return Evidence(ObjectRef(key, etag_of(data), len(data), "2026-01-02T03:04:05Z"), NOT_ASKED, NOT_ASKED)


async def remember(ledger: Ledger, store: Store, key: str, digest: str, bucket: str = "bucket") -> None:
    data = store.objects[key]
    await ledger.record(
        Entry(
            bucket=bucket,
            key=key,
            version_id=None,
            etag=etag_of(data),
            size=len(data),
            digests={"sha256": digest},
            hashed_at="2026-01-02T03:04:05Z",
        )
    )


async def test_object_whose_digest_differs_from_the_ledger_stays_pending_and_its_neighbours_are_hashed(
    ledger: Ledger,
) -> None:
    store = Store({"a": b"a", "b": b"b"})
    await remember(ledger, store, "a", "0" * 64)
    with ThreadPoolExecutor(1) as executor:
        hasher = hasher_of(store, ledger, executor)
        found = await HashStatusFinder("bucket", ledger, ("sha256", "sha1"), hasher).find(
            [evidence_of(store, key) for key in ("a", "b")]
        )
    assert [looked and looked.state for looked in found] == ["pending", "hashed_now"]
    assert [looked and looked.failure for looked in found] == ["DigestConflict", ""]
    (known,) = await ledger.known("bucket", [evidence_of(store, "a").ref], ("sha256",))
    assert known == {"sha256": "0" * 64}


async def test_every_attempt_waits_for_its_turn(ledger: Ledger) -> None:
    store = Store({"a": b"a"}, failures={"a": [CallFailed("GetObject", "SlowDown", 503)]})
    rate = CountedRate()
    with ThreadPoolExecutor(1) as executor:
        taken = await hasher_of(store, ledger, executor, rate).hash([evidence_of(store, "a").ref])
    assert taken == [HashStatus("hashed_now")]
    assert rate.turns == len(store.reads) == 2


@pytest.mark.parametrize(("attempts", "state"), [(1, "pending"), (2, "hashed_now")])
async def test_an_object_is_tried_as_often_as_the_settings_say(ledger: Ledger, attempts: int, state: str) -> None:
    store = Store({"a": b"a"}, failures={"a": [CallFailed("GetObject", "SlowDown", 503)]})
    with ThreadPoolExecutor(1) as executor:
        (taken,) = await hasher_of(store, ledger, executor, attempts=attempts).hash([evidence_of(store, "a").ref])
    assert taken.state == state


async def test_large_chunks_are_hashed_in_the_given_threads_and_in_no_others(ledger: Ledger) -> None:
    store = Store({"a": bytes(MIB)})
    default = ThreadPoolExecutor(1)
    default.shutdown()
    asyncio.get_running_loop().set_default_executor(default)  # whoever uses it fails
    with ThreadPoolExecutor(1) as executor:
        hasher = InProcessHasher(store, ledger, ("sha256",), HashOptions(bucket="bucket", executor=executor))
        assert await hasher.hash([evidence_of(store, "a").ref]) == [HashStatus("hashed_now")]
    (known,) = await ledger.known("bucket", [evidence_of(store, "a").ref], ("sha256",))
    assert known == {"sha256": hashlib.sha256(store.objects["a"]).hexdigest()}


async def test_concurrency_is_the_ceiling_of_hashing_too(stub: StubServer, ledger: Ledger, tmp_path: Path) -> None:
    for number in range(4):
        stub.put(BUCKET, f"{number:02}", None, size=16 * MIB)  # more than sockets hold: its answer lasts
    at_once: list[int] = []

    def watch(operation: str, key: str, nth: int) -> None:
        if operation == "GetObject":
            at_once.append(stub.in_flight)

    stub.faults = [watch]
    result = await audit(stub, tmp_path, ledger=ledger, hash=True, engine="boto3", concurrency=1, only=("K01",))
    assert result.summary["hashing"]["hashed_now"] == 4
    assert at_once == [1, 1, 1, 1]


async def test_streams_of_one_object_have_connections_beyond_the_runs_concurrency(
    stub: StubServer, ledger: Ledger, tmp_path: Path
) -> None:
    stub.put(BUCKET, "large", None, size=16 * MIB)
    at_once: list[int] = []

    def watch(operation: str, key: str, nth: int) -> Fault | None:
        if operation != "GetObject":
            return None
        at_once.append(stub.in_flight)
        return latency(0.5)  # or one range could be read before the next is asked for

    stub.faults = [watch]
    result = await audit(
        stub, tmp_path, ledger=ledger, hash=True, streams=4, engine="direct", concurrency=1, only=("K01",)
    )
    assert result.summary["hashing"]["hashed_now"] == 1
    assert max(at_once) > 1
