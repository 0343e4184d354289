"""A mixed audit by the packaged functions over ranges: object by object what a live one by one function says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

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
from tests.system.e2e.system import Make, System, told

OBJECTS: Final = 150
RANGES: Final = 3


@pytest.fixture
def samples(stub: StubServer) -> StubBucket:
    """Objects of every kind, all of the odd keys among them; no call is denied."""
    stub.world.buckets[BUCKET] = allowed(sample_bucket(OBJECTS))
    return stub.world.buckets[BUCKET]


def mixing(make: Make, stub: StubServer, out: Path, **changed: Any) -> System:
    variables = {
        "AUDITOR_SOURCE": "mixed",
        "AUDITOR_INVENTORY": PLACE,
        "AUDITOR_ENDPOINT_URL": stub.url,
        "AUDITOR_OUT": str(out),
        "AUDITOR_LEVEL": "metadata",
        "AUDITOR_ONLY": ",".join(BY_REPORT),
        "AUDITOR_LEDGER": "",
        "AUDITOR_QUEUE": "",
        "AUDITOR_MAX_RATE": "2000",
        "AUDITOR_MAP_RANGES": str(RANGES),
        "AUDITOR_MAP_CONCURRENCY": str(RANGES),
    }
    return make(audit={"timeout": 120.0, "variables": variables, **changed})


@pytest.mark.parametrize("form", FORMS)
def test_a_mixed_audit_by_the_machine_says_what_a_live_one_says(
    make: Make, deployment: Deployment, stub: StubServer, samples: StubBucket, tmp_path: Path, form: str
) -> None:
    report_of(stub, samples, form=form, files=3)
    samples.put("made since", b"new", acl="public-read")
    samples.put(ODD_KEYS["newline"], b"written again since")
    samples.delete(next(iter(samples.objects.keys)))
    system = mixing(make, stub, tmp_path / "shared")
    done = deployment.execute({"bucket": BUCKET})
    assert done["status"] == "SUCCEEDED", (done.get("error"), done.get("cause"))
    ranges = {one.event["range"] for one in system.local.invoked if one.event["action"] == "range"}
    assert len(ranges) == RANGES
    mixed, asked = read_back(json.loads(done["output"])["runs"][0]), stub.count("GetObjectAcl")
    system.fire({"bucket": BUCKET, "source": "live"})
    live = read_back(told(system.local.invoked[-1].answer)["runs"][0])
    assert live.coverage == mixed.coverage
    states = assert_agree(live.objects, mixed.objects)
    assert states["partial"] > 0, "members of the report"
    assert asked < stub.count("GetObjectAcl") - asked, "most ACLs are the report's"
    assert same_findings(live, mixed)
    assert any("S3 Inventory report" in words for words in mixed.summary["not_looked_at"])
    assert [path.name for path in mixed.folder.rglob("spread.json")] == []
