"""Whole audits against the stub; every summary is checked against the lines of its folder."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest

from auditor.ledger import open_ledger
from auditor.ledger.base import Entry
from auditor.model.bucket import BUCKET_OWNER_ENFORCED
from auditor.model.target import Target
from auditor.rules.base import ACLS_DISABLED, NOT_NEEDED
from tests.support.audit_runs import Line, Result, audit, without
from tests.support.loop_blocking import free_loop as free_loop
from tests.support.servers.clients import BUCKET
from tests.support.servers.samples import KINDS, SAMPLES, sample_bucket, sample_key, sample_kind
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import (
    SLOW_DOWN,
    VANISH,
    first_n,
    on_keys,
    random_faults,
)
from tests.support.servers.world import OWNER, STRANGER, StubBucket

COUNT: Final = 120


@pytest.fixture
def samples(stub: StubServer) -> StubBucket:
    """The stub's bucket with objects of every kind, odd keys first."""
    stub.world.buckets[BUCKET] = sample_bucket(COUNT)
    return stub.world.buckets[BUCKET]


@pytest.fixture
def every_version(stub: StubServer, bucket: StubBucket) -> StubBucket:
    """The stub's bucket with versions of every kind, a null version, and delete markers."""
    bucket.put("before versioning", b"null")
    bucket.versioning = "Enabled"
    for number in range(90):
        key = f"key {number % 30:02d}"
        bucket.put(key, f"{number}".encode(), **SAMPLES[sample_kind(number)])
        if number % 7 == 0:
            bucket.delete(key)
    bucket.delete("only a marker")
    return bucket


def findings_of(result: Result) -> list[Line]:
    return sorted(without(result.findings, "since"), key=lambda line: line["fingerprint"])


async def test_every_object_has_an_outcome_a_verdict_its_rules_and_its_owner(
    stub: StubServer, samples: StubBucket, tmp_path: Path
) -> None:
    result = await audit(stub, tmp_path, ignore=("K01",))
    kinds = {sample_key(number): sample_kind(number) for number in range(COUNT)}
    undecided = {key for key, kind in kinds.items() if KINDS[kind].unread}
    assert (result.summary["complete"], result.code) == (True, 4)
    assert result.coverage == {
        "listed": COUNT,
        "audited": COUNT - len(undecided),
        "vanished": 0,
        "undecided": len(undecided),
        "delete_markers": 0,
    }
    assert {line["key"] for line in result.undecided} == undecided
    for line in result.undecided:
        action, code = KINDS[kinds[line["key"]]].unread or ("", "")
        assert line["unread"] == [{"action": action, "code": code}]
    for key, kind in kinds.items():
        line = result.line(key)
        assert line["owner"] == (STRANGER if "foreign" in kind else OWNER)
        assert (line["verdict"], tuple(line["rules"])) == (KINDS[kind].verdict, KINDS[kind].rules)


async def test_metadata_is_kept_by_name_only_unless_asked(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    bucket.put("k", metadata={"secret": "hunter2"})
    names = await audit(stub, tmp_path)
    values = await audit(stub, tmp_path, keep_metadata=True)
    assert names.line("k")["head"]["metadata"] == ["secret"]
    assert values.line("k")["head"]["metadata"] == {"secret": "hunter2"}


async def test_every_version_has_an_outcome_and_markers_are_counted(
    stub: StubServer, every_version: StubBucket, tmp_path: Path
) -> None:
    result = await audit(stub, tmp_path)
    assert result.coverage["delete_markers"] == 0
    assert all(line["version_id"] is None for line in result.objects)
    assert stub.count("ListObjectVersions") == 0
    stub.forget()
    result = await audit(stub, tmp_path, versions=True)
    assert (result.coverage["listed"], result.coverage["delete_markers"]) == (91, 14)
    assert result.line("before versioning")["version_id"] == "null"
    asked = [call for call in stub.calls if call.operation in {"GetObjectAcl", "HeadObject"}]
    assert all(call.version_id for call in asked)
    of = Counter(call.operation for call in asked)
    assert of["HeadObject"] == 91
    # A HEAD's bare 400 is called SSE-C when an ACL that was asked after it was answered.
    refused = sum(line["unread"] == [{"action": "HeadObject", "code": "SSE-C"}] for line in result.undecided)
    assert 91 <= of["GetObjectAcl"] <= 91 + refused


async def test_versions_under_faults(stub: StubServer, every_version: StubBucket, tmp_path: Path) -> None:
    quiet = await audit(stub, tmp_path, versions=True)
    stub.faults = [random_faults(0.3, seed=3)]
    loud = await audit(stub, tmp_path, versions=True)
    assert loud.undated == quiet.undated
    assert findings_of(loud) == findings_of(quiet)
    assert (loud.coverage, loud.undecided) == (quiet.coverage, quiet.undecided)
    assert loud.summary["rules_undecided"] == quiet.summary["rules_undecided"]
    assert loud.summary["calls"]["retried"] >= loud.summary["calls"]["throttled"] > 0


async def test_object_that_is_throttled_for_ever_is_undecided(
    stub: StubServer, samples: StubBucket, tmp_path: Path
) -> None:
    stub.faults = [on_keys(lambda key: key.endswith("7.txt"), SLOW_DOWN)]
    result = await audit(stub, tmp_path, retry_attempts=2)
    stuck = [line for line in result.undecided if line["key"].endswith("7.txt")]
    assert len(stuck) == sum(key.endswith("7.txt") for key in samples.objects.keys)
    assert stuck[0]["unread"] == [
        {"action": "GetObjectAcl", "code": "SlowDown"},
        {"action": "HeadObject", "code": "503"},
    ]
    assert (result.summary["complete"], result.code) == (True, 4)


async def test_gone_or_overwritten_between_listing_and_reading(
    stub: StubServer, samples: StubBucket, tmp_path: Path
) -> None:
    leaving = {f"plain/{number:07d}.txt" for number in range(50, 100, 5)}
    samples.put("k", b"old")

    def overwrite(operation: str, key: str, nth: int) -> None:
        if (operation, key) == ("GetObjectAcl", "k"):
            samples.put("k", b"newer", sse=None)

    half = on_keys(lambda key: key == "plain/0000051.txt", VANISH, {"HeadObject"})
    stub.faults = [overwrite, half, on_keys(lambda key: key in leaving, VANISH)]
    result = await audit(stub, tmp_path)
    gone = [line for line in result.objects if line["outcome"] == "vanished"]
    assert {line["key"] for line in gone} == leaving | {"plain/0000051.txt"}
    assert (result.coverage["vanished"], {line["verdict"] for line in gone}) == (11, {None})
    line = result.line("k")
    assert (line["changed"], line["size"], line["outcome"]) == (True, 5, "audited")
    assert line["etag"] == samples.objects.versions("k")[0].etag
    assert "E01" in line["rules"]


async def test_calls_are_counted_as_the_server_counts_them(
    stub: StubServer, samples: StubBucket, tmp_path: Path
) -> None:
    stub.faults = [first_n(3, SLOW_DOWN, {"ListObjectsV2"}), random_faults(0.2, seed=1, kinds=(SLOW_DOWN,))]
    result = await audit(stub, tmp_path)
    calls = result.summary["calls"]
    assert result.coverage["listed"] == COUNT
    assert calls["list"] == stub.count("ListObjectsV2") >= 4
    assert calls["acl"] == stub.count("GetObjectAcl")
    assert calls["head"] == stub.count("HeadObject")


async def test_only_the_calls_that_the_rules_need(stub: StubServer, samples: StubBucket, tmp_path: Path) -> None:
    acls = await audit(stub, tmp_path, only=("O01", "O02"))
    assert (stub.count("GetObjectAcl"), stub.count("HeadObject")) == (COUNT, 0)
    assert all(line["head"] == {"skipped": NOT_NEEDED} for line in acls.objects)
    assert {line["rule"] for line in acls.findings} == {"O01", "O02"}
    stub.forget()
    listing = await audit(stub, tmp_path, only=("O09", "K01"))
    assert stub.count("GetObjectAcl") == stub.count("HeadObject") == 0
    foreign = {sample_key(number) for number in range(COUNT) if "foreign" in sample_kind(number)}
    assert {line["key"] for line in listing.findings if line["rule"] == "O09"} == foreign
    heads = await audit(stub, tmp_path, only=("E01",))
    assert stub.count("GetObjectAcl") <= heads.coverage["undecided"]
    assert heads.summary["verdicts"]["unknown"] == COUNT
    assert any("ACLs of the objects" in words for words in heads.summary["not_looked_at"])
    stub.forget()
    samples.ownership = BUCKET_OWNER_ENFORCED
    off = await audit(stub, tmp_path)
    assert (stub.count("GetObjectAcl"), stub.count("HeadObject")) == (0, COUNT)
    assert all(line["acl"] == {"skipped": ACLS_DISABLED} for line in off.objects)
    assert any(ACLS_DISABLED in words for words in off.summary["not_looked_at"])
    assert off.summary["verdicts"]["exposed"] == 0


async def test_owner_is_judged_by_the_listing_where_the_acl_is_denied(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    bucket.put("k", owner=STRANGER, deny={"acl"})
    result = await audit(stub, tmp_path)
    assert "O09" in result.line("k")["rules"]
    assert "O09" not in result.undecided[0]["rules"]
    assert "O02" in result.undecided[0]["rules"]


async def test_every_object_is_in_one_of_five_states_of_its_hash(
    stub: StubServer, samples: StubBucket, tmp_path: Path
) -> None:
    kinds = [sample_kind(number) for number in range(COUNT)]
    unhashable = sum(kind in {"archived", "sse-c", "denied-head"} for kind in kinds)
    async with open_ledger(f"sqlite:{tmp_path / 'ledger.db'}") as ledger:
        asked = await audit(stub, tmp_path, ledger=ledger)
        assert stub.count("GetObject") == 0
        hashed = await audit(stub, tmp_path, ledger=ledger, hash=True)
        again = await audit(stub, tmp_path, ledger=ledger, hash=True)
    states = {"algorithms": ["sha256"], "known": 0, "hashed_now": 0, "queued": 0, "unhashable": unhashable}
    states |= {"left_for_cost": {}, "routed": {"objects": 0, "bytes": 0}, "failed": {}}
    assert asked.summary["hashing"] == {**states, "pending": COUNT - unhashable}
    assert hashed.summary["hashing"] == {**states, "hashed_now": COUNT - unhashable, "pending": 0}
    assert again.summary["hashing"] == {**states, "known": COUNT - unhashable, "pending": 0}
    assert stub.count("GetObject") == COUNT - unhashable
    assert {line["hashed"] for line in again.objects if line["outcome"] == "audited"} == {True, False}


async def test_digests_that_differ_are_a_finding_and_a_dear_object_is_left(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    stored = b64encode(sha256(b"data").digest()).decode()
    item = bucket.put("differs", b"data", checksums={"SHA256": stored})
    bucket.put("dear", b"x" * 7, storage_class="STANDARD_IA")
    known, at = {"sha256": "0" * 64}, "2026-01-02T03:04:05Z"
    async with open_ledger(f"sqlite:{tmp_path / 'ledger.db'}") as ledger:
        await ledger.record(
            Entry(bucket=BUCKET, key=item.key, version_id=None, etag=item.etag, size=4, digests=known, hashed_at=at)
        )
        result = await audit(stub, tmp_path, ledger=ledger, hash=True, only=("I03", "E01"))
    assert [(line["key"], line["rule"]) for line in result.findings] == [("differs", "I03")]
    assert result.summary["hashing"]["left_for_cost"] == {"STANDARD_IA": {"objects": 1, "bytes": 7}}


async def test_budget_ends_the_run_and_resuming_completes_it(
    stub: StubServer, samples: StubBucket, tmp_path: Path
) -> None:
    whole = await audit(stub, tmp_path / "whole")
    out = tmp_path / "slices"
    stub.forget()
    result = await audit(stub, out, max_calls=90, part_lines=5)
    assert len(stub.requests) <= 90 + 1  # GetCallerIdentity answers for the account
    assert (result.summary["complete"], result.code) == (False, 4)
    assert "--max-calls" in result.summary["resume"]["reason"]
    assert not (out / f"bucket={BUCKET}" / "latest.json").exists()
    slices = 1
    while not result.summary["complete"]:
        result = await audit(stub, out, max_calls=90, part_lines=5, resume=result.summary["resume"]["run"])
        slices += 1
    assert slices > 2
    calls = result.summary["calls"]
    assert (calls["acl"], calls["head"]) == (stub.count("GetObjectAcl"), stub.count("HeadObject"))
    assert result.undated == whole.undated
    assert findings_of(result) == findings_of(whole)
    assert result.coverage == whole.coverage


async def test_latest_names_complete_whole_runs_by_target(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    for number in range(10):
        bucket.put(f"plain/{number}")

    async def run(target: Target, **settings: Any) -> str:
        return str((await audit(stub, tmp_path, target=target, **settings)).summary["run"])

    whole = await run(Target(BUCKET))
    prefix = await run(Target(BUCKET, "plain/"))
    versions = await run(Target(BUCKET, versions=True), versions=True)
    await run(Target(BUCKET, start_after="a"))
    await run(Target(BUCKET, "plain/", stop_at="plain/6"))
    await run(Target(BUCKET), max_calls=20)
    latest = json.loads((tmp_path / f"bucket={BUCKET}" / "latest.json").read_text())
    runs = {"current": {"": whole, "plain/": prefix}, "versions": {"": versions}}
    assert latest == {"format": 1, "runs": runs}
