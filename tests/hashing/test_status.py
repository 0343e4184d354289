"""Hashing in the audit's own process: one object's trouble stays its own, and the ceilings hold."""

from __future__ import annotations

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from auditor.hashing.digest.options import HashOptions
from auditor.hashing.digest.result import entry_of
from auditor.hashing.in_process import InProcessHasher
from auditor.hashing.limits import MIB
from auditor.hashing.status import HashStatusFinder
from auditor.ledger import open_ledger
from auditor.ledger.base import Ledger
from auditor.model.object import Evidence, ObjectRef, Skipped
from tests.support.audit_runs import audit
from tests.support.fakes.hashing import Store, etag_of
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import Fault, latency

NOT_ASKED = Skipped("not asked")


@pytest.fixture
async def ledger() -> AsyncIterator[Ledger]:
    async with open_ledger("sqlite::memory:") as opened:
        yield opened


def evidence_of(store: Store, key: str) -> Evidence:
    data = store.objects[key]
    return Evidence(ObjectRef(key, etag_of(data), len(data), "2026-01-02T03:04:05Z"), NOT_ASKED, NOT_ASKED)


async def test_object_whose_digest_differs_from_the_ledger_stays_pending_and_its_neighbours_are_hashed(
    ledger: Ledger,
) -> None:
    store = Store({"a": b"a", "b": b"b"})
    ref, wrong = evidence_of(store, "a").ref, {"sha256": "0" * 64}
    await ledger.record(entry_of("bucket", ref, wrong))
    with ThreadPoolExecutor(1) as executor:
        options = HashOptions(bucket="bucket", executor=executor)
        hasher = InProcessHasher(store, ledger, ("sha256", "sha1"), options)
        found = await HashStatusFinder("bucket", ledger, ("sha256", "sha1"), hasher).find(
            [evidence_of(store, key) for key in ("a", "b")]
        )
    assert [looked and looked.state for looked in found] == ["pending", "hashed_now"]
    assert [looked and looked.failure for looked in found] == ["DigestConflict", ""]
    (known,) = await ledger.known("bucket", [evidence_of(store, "a").ref], ("sha256",))
    assert known == {"sha256": "0" * 64}


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
