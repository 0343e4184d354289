"""A mixed audit by the packaged functions over ranges: object by object what a live one by one function says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests.audit.sources.test_inventory import BY_REPORT, PLACE, allowed, assert_agree, report_of, same_findings
from tests.support.audit_runs import read_back
from tests.support.inventory_reports import FORMS
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.clients import BUCKET
from tests.support.servers.samples import sample_bucket
from tests.support.servers.stub import StubServer
from tests.support.servers.world import StubBucket
from tests.system.e2e.deployment import Deployment
from tests.system.e2e.system import Make, System

OBJECTS: Final = 150
RANGES: Final = 3


@pytest.fixture
def samples(stub: StubServer) -> StubBucket:
    """Objects of every kind, all of the odd keys among them; no call is denied."""
    stub.world.buckets[BUCKET] = allowed(sample_bucket(OBJECTS))
    return stub.world.buckets[BUCKET]


def mixing(make: Make, deployment: Deployment, stub: StubServer, out: Path, **variables: str) -> System:
    given = {
        "AUDITOR_SOURCE": "mixed",
        "AUDITOR_INVENTORY": PLACE,
        "AUDITOR_STATE_MACHINE": deployment.machine(shared=True),
        "AUDITOR_ENDPOINT_URL": stub.url,
        "AUDITOR_OUT": str(out),
        "AUDITOR_LEVEL": "metadata",
        "AUDITOR_ONLY": ",".join(BY_REPORT),
        "AUDITOR_LEDGER": "",
        "AUDITOR_QUEUE": "",
        "AUDITOR_MAX_RATE": "2000",
        "AUDITOR_MAP_CONCURRENCY": str(RANGES),
        **variables,
    }
    return make(audit={"timeout": 120.0, "variables": given})


@pytest.mark.parametrize("form", FORMS)
def test_a_mixed_audit_by_the_machine_says_what_a_live_one_says(
    make: Make, deployment: Deployment, stub: StubServer, samples: StubBucket, tmp_path: Path, form: str
) -> None:
    report_of(stub, samples, form=form, files=3)
    samples.put("made since", b"new", acl="public-read")
    samples.put(ODD_KEYS["newline"], b"written again since")
    samples.delete(next(iter(samples.objects.keys)))
    calls = str(2 * len(samples.objects.keys) // RANGES)
    system = mixing(make, deployment, stub, tmp_path / "shared", AUDITOR_RANGE_CALLS=calls)
    done = deployment.execute({"bucket": BUCKET}, shared=True)
    assert done["status"] == "SUCCEEDED", (done.get("error"), done.get("cause"))
    assert len({name for name, _ in system.ranges()}) > 1
    mixed, asked = read_back(json.loads(done["output"])["runs"][0]), stub.count("GetObjectAcl")
    system = mixing(make, deployment, stub, tmp_path / "shared")
    assert system.fire({"bucket": BUCKET, "source": "live"}) == []
    live = read_back(system.summaries()[-1])
    assert live.coverage == mixed.coverage
    states = assert_agree(live.objects, mixed.objects)
    assert states["partial"] > 0, "members of the report"
    assert asked < stub.count("GetObjectAcl") - asked, "most ACLs are the report's"
    assert same_findings(live, mixed)
    assert any("S3 Inventory report" in words for words in mixed.summary["not_looked_at"])
    assert [path.name for path in mixed.folder.rglob("spread.json")] == []
