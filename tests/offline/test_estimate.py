"""An estimate lists only, and counts the very calls that the audit then sends."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from auditor.aio.stop import Stop
from auditor.config.settings import Settings
from auditor.ledger import open_ledger
from auditor.ledger.base import Ledger
from auditor.model.target import Target
from auditor.offline.estimate import EstimateRun
from auditor.offline.estimate_report import Estimate
from auditor.runs.reading import RunReader
from tests.support.audit_runs import audit
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket

CLASSES = ("STANDARD", "STANDARD_IA", "ONEZONE_IA", "GLACIER_IR", "INTELLIGENT_TIERING", "GLACIER", "DEEP_ARCHIVE")


async def estimate(
    stub: StubServer,
    *,
    target: Target | None = None,
    ledger: Ledger | None = None,
    stop: Stop | None = None,
    last: RunReader | None = None,
    clock: Callable[[], float] = time.time,
    **given: Any,
) -> Estimate:
    settings = Settings(**{"endpoint_url": stub.url, "max_rate": None, "concurrency": 16, **given})
    aim = target or Target(BUCKET, versions=settings.versions)
    return await EstimateRun(aim, settings, ledger, Stop() if stop is None else stop, last=last, clock=clock).run()


SETTINGS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"level": "exposure"},
    {"only": ("E01",)},
    {"only": ("O09",)},
    {"versions": True},
    {"target": Target(BUCKET, "a/", start_after="a/0010", stop_at="a/0030")},
)


async def test_the_audit_sends_these_calls(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    for number in range(40):
        bucket.put(f"a/{number:04}", b"x")
    for ownership, settings in ((bucket.ownership, one) for one in (*SETTINGS, {"only": ("O02",)})):
        bucket.ownership = "BucketOwnerEnforced" if "O02" in settings.get("only", ()) else ownership
        stub.forget()
        found = await estimate(stub, **settings)
        assert (stub.count("GetObjectAcl"), stub.count("HeadObject")) == (0, 0), settings
        assert stub.count("ListObjectsV2") + stub.count("ListObjectVersions") == found.calls.list, settings
        stub.forget()
        run = await audit(stub, tmp_path, **settings)
        calls = run.summary["calls"]
        assert (found.calls.list, found.calls.acl, found.calls.head) == (calls["list"], calls["acl"], calls["head"])
        asked = [call for call in stub.calls if call.operation != "GetCallerIdentity"]
        assert found.calls.total == len(asked) + 1, settings
        assert (found.objects, found.complete) == (run.coverage["listed"], True), settings


async def test_prices_by_storage_class(stub: StubServer, bucket: StubBucket) -> None:
    for name in (*CLASSES, "NEW_CLASS"):
        for number in range(10):
            bucket.put(f"{name}/{number}", b"12345", storage_class=name)
    found = await estimate(stub)
    each = {name: round(one.dollars * 1e6 / 20, 6) for name, one in found.classes.items()}
    assert each == {
        "GLACIER_IR": 10.0, "NEW_CLASS": 10.0, "STANDARD_IA": 1.0, "ONEZONE_IA": 1.0,
        "STANDARD": 0.4, "INTELLIGENT_TIERING": 0.4, "GLACIER": 0.4, "DEEP_ARCHIVE": 0.4,
    }  # fmt: skip
    assert next(iter(found.classes)) in ("GLACIER_IR", "NEW_CLASS")
    assert found.unpriced == ("NEW_CLASS",)
    assert found.bytes == 400
    by_class = sum(one.dollars for one in found.classes.values())
    assert found.dollars == pytest.approx(by_class + found.spent)
    assert found.spent == pytest.approx((1 + found.calls.bucket) * 5e-6)
    assert found.data_events_dollars == pytest.approx(161e-6)
    dearer = await estimate(stub, prices={"list": 0.05, "STANDARD": 0.004, "NEW_CLASS": 0.0, "data_event": 0})
    assert dearer.classes["STANDARD"].dollars == pytest.approx(80e-6)
    assert dearer.classes["NEW_CLASS"].dollars == 0.0
    assert (dearer.unpriced, dearer.data_events_dollars) == ((), 0.0)
    assert dearer.prices["replaced"] == ["NEW_CLASS", "STANDARD", "data_event", "list"]


async def test_bytes_to_hash(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    uri = f"sqlite:{tmp_path / 'ledger.db'}"
    bucket.put("known", b"12345")
    async with open_ledger(uri) as ledger:
        await audit(stub, tmp_path, ledger=ledger, hash=True)
        before = (tmp_path / "ledger.db").read_bytes()
        bucket.put("new", b"1234567")
        bucket.put("frozen", b"x", storage_class="GLACIER")
        bucket.put("dear", b"x" * 1000, storage_class="STANDARD_IA")
        without = await estimate(stub, ledger=ledger)
        found = await estimate(stub, ledger=ledger, hash=True, accept_cost=True)
        assert (tmp_path / "ledger.db").read_bytes() == before
    assert without.hashing is not None
    assert (without.calls.get, without.hashing.left_for_cost) == (0, 1)
    assert found.hashing is not None
    assert (found.hashing.known, found.hashing.objects, found.hashing.bytes) == (1, 2, 1007)
    assert (found.hashing.unhashable, found.hashing.left_for_cost, found.calls.get) == (1, 0, 2)
    assert found.hashing.dollars == pytest.approx(0.4e-6 + 1e-6 + 1000e-9 * 0.01)
    assert found.dollars - without.dollars == pytest.approx(found.hashing.dollars)
