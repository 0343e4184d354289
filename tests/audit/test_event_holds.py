"""Objects under an event hold of Object Lock: held without a date, so L01 and L02 find nothing high about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.audit_runs import Result, audit
from tests.support.engine_names import INSTALLED
from tests.support.inventory_reports import into_bucket, rows_of, write_report
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket

ENDED: Final = {"x-amz-object-lock-retain-until-date": "2020-01-02T03:04:05Z"}
GOVERNANCE: Final = {"x-amz-object-lock-mode": "GOVERNANCE"}
HELD: Final = {"x-amz-object-lock-event-hold": "ON", "x-amz-object-lock-event-hold-duration-years": "7"}
RELEASED: Final = {"x-amz-object-lock-event-hold": "OFF"}
OBJECTS: Final = {
    "held": {**GOVERNANCE, **ENDED, **HELD},
    "held without a mode": HELD,
    "released": {**GOVERNANCE, **ENDED, **RELEASED},
    "nothing": {},
}


async def judged(stub: StubServer, out: Path, mode: str, **settings: Any) -> Result:
    rules = {
        "L01": {"mode": mode, "retention_readable": True},
        "L02": {"days": 30, "retention_readable": True},
    }
    return await audit(stub, out, **{"only": ("L01", "L02"), "rules": rules, **settings})


def found(result: Result) -> dict[str, str]:
    return {f"{line['rule']} {line['key']}": line["severity"] for line in result.findings}


@pytest.fixture
def locked(bucket: StubBucket) -> StubBucket:
    for key, headers in OBJECTS.items():
        bucket.put(key, b"x", headers=headers)
    return bucket


@pytest.mark.parametrize("engine", INSTALLED)
async def test_held_object_has_no_high_finding_and_no_end(
    stub: StubServer, locked: StubBucket, tmp_path: Path, engine: str
) -> None:
    strict = await judged(stub, tmp_path, "COMPLIANCE", engine=engine)
    assert found(strict) == {
        "L01 held": "medium",
        "L01 held without a mode": "medium",
        "L01 released": "high",
        "L01 nothing": "high",
        "L02 released": "medium",
    }
    head = strict.line("held")["head"]
    assert head["object_lock_event_hold"] == "ON"
    assert (head["object_lock_event_hold_duration_days"], head["object_lock_event_hold_duration_years"]) == (None, 7)
    lenient = await judged(stub, tmp_path, "GOVERNANCE", engine=engine)
    assert found(lenient) == {"L01 nothing": "high", "L02 released": "medium"}


@pytest.mark.parametrize("engine", INSTALLED)
async def test_duration_that_is_no_plain_number_leaves_the_object_undecided(
    stub: StubServer, bucket: StubBucket, tmp_path: Path, engine: str
) -> None:
    for duration in ("-5", "9" * 19, "1_0", "\u0661"):
        bucket.put(duration, b"x", headers={**HELD, "x-amz-object-lock-event-hold-duration-years": duration})
    result = await judged(stub, tmp_path, "COMPLIANCE", engine=engine)
    assert (result.coverage["undecided"], result.findings, result.code) == (4, [], 4)
    for line in result.objects:
        assert line["head"] == {"unread": {"action": "HeadObject", "code": "Malformed"}}, line["key"]


async def test_report_of_s3_inventory_tells_the_hold_without_a_call(
    stub: StubServer, locked: StubBucket, tmp_path: Path
) -> None:
    write_report(into_bucket(stub.world.add("reports")), rows_of(locked), bucket=BUCKET)
    mixed: dict[str, Any] = {"source": "mixed", "inventory": "s3://reports/inventory", "only": ("L01",)}
    result = await judged(stub, tmp_path, "COMPLIANCE", **mixed)
    assert {line["key"]: line["head_state"] for line in result.objects} == {
        "held": "partial",
        "released": "partial",
        "held without a mode": "read",
        "nothing": "read",
    }
    assert found(result) == {
        "L01 held": "medium",
        "L01 held without a mode": "medium",
        "L01 released": "high",
        "L01 nothing": "high",
    }
