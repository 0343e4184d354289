"""The bill of a night, term by term, against sums by hand and against `auditor estimate`."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.aio.stop import Stop
from auditor.config.settings import Settings
from auditor.model.target import Target
from auditor.offline.estimate import EstimateRun
from benchmarks.scale import bill, prices
from benchmarks.scale.bill import Term, simulate, total
from benchmarks.scale.night import Night
from tests.benchmarks.scale.figures import FOUND
from tests.support.paths import ROOT
from tests.support.servers.clients import BUCKET
from tests.support.servers.samples import generated_world
from tests.support.servers.stub import StubServer

MILLION = 10**6


def terms(night: Night) -> dict[tuple[str, str], Term]:
    return {(one.service, one.what): one for one in simulate(night, FOUND).terms}


def test_the_guide_says_the_same_of_the_audit_function() -> None:
    """docs/deploy.md: a million objects, 1,000 seconds at 1,769 MB, $0.023."""
    found = terms(Night(objects=MILLION))
    assert found[bill.LAMBDA, "GB-seconds"].dollars == pytest.approx(0.023, rel=0.02)
    assert found[bill.RUN_FOLDER, "PUT requests"].dollars < 0.001
    read = terms(Night(objects=MILLION, ledger_units=bill.LEDGER_UNITS))[bill.DYNAMODB, "read units"].dollars
    assert 0.006 <= read <= 0.012
    guide = (ROOT / "docs" / "ledger.md").read_text(encoding="utf-8")
    assert f"| 0.74 | {1000 * bill.LEDGER_UNITS:.0f} |" in guide


@pytest.mark.parametrize("settings", [{}, {"level": "exposure"}], ids=str)
async def test_auditor_estimate_says_the_same_of_one_bucket(stub: StubServer, settings: dict[str, Any]) -> None:
    objects = 5_000
    stub.world.buckets.update(generated_world(objects).buckets)
    chosen = Settings(endpoint_url=stub.url, **settings)
    estimate = await EstimateRun(Target(BUCKET), chosen, None, Stop()).run()
    night = Night(objects=objects, head=not settings, data_events=True)
    simulated = simulate(night, FOUND)
    assert night.lists == estimate.calls.list
    assert night.object_calls == estimate.calls.acl + estimate.calls.head
    questions = estimate.calls.bucket * prices.of_lists(1)
    assert total(simulated.terms, (bill.S3_LIST, bill.S3_CALLS)) == pytest.approx(estimate.dollars - questions)
    assert total(simulated.terms, (bill.CLOUDTRAIL,)) == pytest.approx(estimate.data_events_dollars)
    waits = estimate.calls.bucket / chosen.max_rate if chosen.max_rate else 0.0
    assert simulated.course.seconds == pytest.approx(estimate.seconds - waits + 0.5, abs=0.1)
    assert simulated.course.limit == "the ceiling of calls"
