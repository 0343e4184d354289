"""A mixed audit says the same of each object as a live one, and calls only where the report cannot answer."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

import auditor
from auditor.aio.stop import Stop
from auditor.errors import InventoryError, RunStopped
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, PublicAccessBlock, Semantics
from auditor.model.object import ALL_USERS, Grant
from auditor.model.reuse import HEAD, ReusePolicy
from tests.audit.test_run import every_version as every_version
from tests.support.audit_runs import Line, Result, audit, read_back, without
from tests.support.inventory_reports import (
    ALL,
    CREATED,
    CURRENT,
    FORMS,
    WrittenReport,
    acl_field,
    into_bucket,
    rows_of,
    write_report,
)
from tests.support.loop_blocking import free_loop as free_loop
from tests.support.nights import DAY, Nights, asked
from tests.support.odd_keys import ODD_KEYS
from tests.support.servers.clients import BUCKET
from tests.support.servers.samples import sample_bucket
from tests.support.servers.stub import StubServer
from tests.support.servers.world import OWNER, STRANGER, Odd, StubBucket

COUNT: Final = 100
PLACE: Final = "s3://reports/inventory"
MIXED: Final[dict[str, Any]] = {"source": "mixed", "inventory": PLACE}
ONLY_ACLS: Final = ("O01", "O02", "O03", "O04", "O05", "O07", "O08", "O09", "O10", "O11", "O16", "K01", "K02")
BY_REPORT: Final = (*ONLY_ACLS, "E01")
"""Rules whose facts a report has, in the bucket of these tests."""


@pytest.fixture
def samples(stub: StubServer) -> StubBucket:
    """The stub's bucket with objects of every kind, odd keys first. No call is denied: a report may know more then."""
    stub.world.buckets[BUCKET] = sample_bucket(COUNT)
    return allowed(stub.world.buckets[BUCKET])


@pytest.fixture
def versions(every_version: StubBucket) -> StubBucket:
    return allowed(every_version)


def allowed(bucket: StubBucket) -> StubBucket:
    for key in bucket.objects.keys:
        for item in bucket.objects.versions(key):
            item.deny.clear()
    return bucket


def report_of(
    stub: StubServer,
    bucket: StubBucket,
    *,
    versions: bool = False,
    columns: Sequence[str] | None = None,
    **options: Any,
) -> WrittenReport:
    """Write a report of the bucket as it is to the stub's bucket of reports."""
    place = stub.world.buckets.get("reports") or stub.world.add("reports")
    rows = options.pop("rows", None) or rows_of(bucket, versions=versions)
    chosen = columns or (ALL if versions else CURRENT)
    return write_report(into_bucket(place), rows, bucket=bucket.name, columns=chosen, **options)


def shared(lines: list[Line]) -> list[Line]:
    """The lines without their age, and with a HEAD and grants in one form."""
    found = []
    for line in without(without(lines, "since"), "read_at"):
        if "grants" in line["acl"]:
            line["acl"] = {**line["acl"], "grants": sorted(line["acl"]["grants"], key=json.dumps)}
        found.append(line)
    return found


def assert_agree(live: list[Line], mixed: list[Line]) -> Counter[str]:
    """Assert that two runs say the same; of a partial HEAD, its members. Return the number of HEADs by their state."""
    states: Counter[str] = Counter()
    assert len(live) == len(mixed)
    for one, other in zip(shared(live), shared(mixed), strict=True):
        states[other["head_state"]] += 1
        if other["head_state"] == "partial":
            known = {name: value for name, value in other["head"].items() if name != "partial"}
            assert known == {name: one["head"][name] for name in known}
            other = {**other, "head": one["head"], "head_state": one["head_state"]}
        assert one == other
    return states


def as_seen_live(lines: list[Line]) -> list[Line]:
    """The lines without the grants and owners that are stored and hidden, which no call shows."""
    found = []
    for line in without(lines, "dormant"):
        hidden = [reason for reason in line["reasons"] if reason.startswith("stored-")]
        assert bool(hidden) is (line["verdict"] == "dormant")
        verdict = "private" if hidden else line["verdict"]
        found.append({**line, "verdict": verdict, "reasons": [one for one in line["reasons"] if one not in hidden]})
    return found


def same_findings(live: Result, mixed: Result) -> bool:
    def of(result: Result) -> list[Line]:
        return sorted(without(result.findings, "since"), key=lambda line: line["fingerprint"])

    return of(live) == of(mixed) and live.summary["verdicts"] == mixed.summary["verdicts"]


@pytest.mark.parametrize("rules", [(), BY_REPORT], ids=["all", "report"])
async def test_current_objects_in_each_form(
    stub: StubServer, samples: StubBucket, tmp_path: Path, rules: tuple[str, ...]
) -> None:
    live = await audit(stub, tmp_path / "live", only=rules)
    for form in FORMS:
        report_of(stub, samples, form=form, files=3)
        mixed = await audit(stub, tmp_path / form, only=rules, **MIXED)
        states = assert_agree(live.objects, mixed.objects)
        assert same_findings(live, mixed)
        assert mixed.summary["calls"]["acl"] < live.summary["calls"]["acl"] / 5
        assert bool(states["partial"]) is (rules == BY_REPORT)


async def test_versions_in_each_form(stub: StubServer, versions: StubBucket, tmp_path: Path) -> None:
    live = await audit(stub, tmp_path / "live", versions=True)
    for form in FORMS:
        report_of(stub, versions, versions=True, form=form)
        mixed = await audit(stub, tmp_path / form, versions=True, **MIXED)
        assert_agree(live.objects, mixed.objects)
        assert same_findings(live, mixed)
        assert live.coverage == mixed.coverage
        assert mixed.summary["calls"]["acl"] < live.summary["calls"]["acl"] / 5
    current = await audit(stub, tmp_path / "current", only=BY_REPORT)
    assert_agree(current.objects, (await audit(stub, tmp_path / "mixed", only=BY_REPORT, **MIXED)).objects)


async def test_acls_that_are_hidden_or_may_be_off(stub: StubServer, samples: StubBucket, tmp_path: Path) -> None:
    report_of(stub, samples)
    settings: dict[str, Any] = {"semantics": Semantics.AWS, "only": ONLY_ACLS}
    samples.public_access_block = PublicAccessBlock(ignore_public_acls=True)
    live = await audit(stub, tmp_path / "live", **settings)
    mixed = await audit(stub, tmp_path / "mixed", **settings, **MIXED)
    assert_agree(live.objects, as_seen_live(mixed.objects))
    samples.public_access_block, samples.odd["GetBucketOwnershipControls"] = None, Odd.DENIED
    for ownership in (BUCKET_OWNER_ENFORCED, "ObjectWriter"):
        samples.ownership = ownership
        live = await audit(stub, tmp_path / "live", only=ONLY_ACLS)
        mixed = await audit(stub, tmp_path / "mixed", only=ONLY_ACLS, **MIXED)
        assert_agree(live.objects, mixed.objects)
        assert 0 < mixed.summary["calls"]["acl"] < live.summary["calls"]["acl"]


async def test_head_of_the_last_run_lacks_the_values_that_a_report_asks_for(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    """The last run saw no public grant, and stored the names of metadata alone. The report has the grant."""
    bucket.put("k", b"x", acl="public-read", headers={"x-amz-meta-password": "hunter2hunter2"})
    bucket.public_access_block = PublicAccessBlock(ignore_public_acls=True)
    report_of(stub, bucket)
    nights = Nights(stub, tmp_path, only=("O02", "O15"), semantics=Semantics.AWS, keep=ReusePolicy({HEAD: 3650 * DAY}))
    await nights.night()
    bucket.public_access_block = None
    mixed = await nights.night(**MIXED)
    assert sorted(line["rule"] for line in mixed.findings) == ["O02", "O15"]
    assert asked(stub) == (0, 1)


@pytest.fixture
def opened(bucket: StubBucket) -> StubBucket:
    """Grants that are stored, and count for nothing once ACLs are off or public ones blocked."""
    bucket.put("private", b"x")
    bucket.put("public", b"x", acl="public-read")
    bucket.put("shared", b"x", grants=(Grant(OWNER, "FULL_CONTROL"), Grant(STRANGER, "READ")))
    bucket.put("foreign", b"x", owner=STRANGER)
    return bucket


async def test_hidden_grants_with_acls_off(stub: StubServer, opened: StubBucket, tmp_path: Path) -> None:
    report_of(stub, opened)
    opened.ownership = BUCKET_OWNER_ENFORCED
    mixed = await audit(stub, tmp_path / "runs", only=("O02", "O08", "O13", "E01"), semantics=Semantics.AWS, **MIXED)
    found = sorted((line["key"], line["rule"], line["grantee"], line["permission"]) for line in mixed.findings)
    assert found == [
        ("foreign", "O13", STRANGER, "FULL_CONTROL"),
        ("public", "O13", ALL_USERS, "READ"),
        ("shared", "O13", STRANGER, "READ"),
    ]
    assert mixed.summary["calls"]["acl"] == 0
    assert mixed.line("public")["dormant"] == {
        "acl": {"owner": OWNER, "grants": [{"grantee": ALL_USERS, "permission": "READ"}]},
        "at": "2026-03-04T01:02:00Z",
    }
    assert "dormant" not in mixed.line("private")
    assert mixed.line("private")["verdict"] == "private"
    assert (mixed.summary["verdicts"]["dormant"], mixed.summary["verdicts"]["exposed"]) == (3, 0)
    assert mixed.line("foreign")["reasons"][-1] == f"stored-owner: {STRANGER}"
    assert mixed.line("public")["audience"] == []
    again = await asyncio.to_thread(auditor.judge_run, mixed.folder, out=str(tmp_path / "again"))
    assert again.summary is not None
    assert same_findings(mixed, read_back(again.summary.to_dict()))
    trusting = await audit(stub, tmp_path, only=("O13",), trusted=frozenset({STRANGER}), **MIXED)
    assert [line["key"] for line in trusting.findings] == ["public"]
    assert [line["key"] for line in trusting.objects if line["verdict"] == "dormant"] == ["public"]
    opened.put("public", b"new")
    later = await audit(stub, tmp_path, only=("O13",), **MIXED)
    assert sorted(line["key"] for line in later.findings) == ["foreign", "shared"]
    lacking = "hidden grants of 1 object whose ACL the report does not have as they are listed"
    assert lacking in later.summary["not_looked_at"]
    live = await audit(stub, tmp_path, only=("O13", "K01"))
    assert (live.findings, live.summary["rules_undecided"]) == ([], [])


async def test_grants_are_hidden_only_by_what_hides_them(stub: StubServer, opened: StubBucket, tmp_path: Path) -> None:
    report_of(stub, opened)
    mixed = await audit(stub, tmp_path, only=("O02", "O13"), **MIXED)
    assert (mixed.summary["rules"], mixed.summary["verdicts"]["dormant"]) == ({"O02": 1}, 0)
    assert not [line for line in mixed.objects if "dormant" in line]
    opened.public_access_block = PublicAccessBlock(ignore_public_acls=True)
    mixed = await audit(stub, tmp_path, only=("O02", "O08", "O13"), semantics=Semantics.AWS, **MIXED)
    found = sorted((line["key"], line["rule"], line["grantee"]) for line in mixed.findings)
    assert found == [("public", "O13", ALL_USERS), ("shared", "O08", STRANGER)]
    assert mixed.line("public")["acl"]["grants"] == [{"grantee": OWNER, "permission": "FULL_CONTROL"}]


async def test_unchanged_objects_need_no_call(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    for key in ODD_KEYS.values():
        bucket.put(key, b"x", acl="public-read")
    report_of(stub, bucket)
    mixed = await audit(stub, tmp_path, only=BY_REPORT, **MIXED)
    assert (mixed.summary["calls"]["acl"], mixed.summary["calls"]["head"]) == (0, 0)
    assert mixed.summary["verdicts"]["exposed"] == len(ODD_KEYS)
    at = "2026-03-04T01:02:00Z"
    own = {"acl": at, "head": at, "acl_from": "inventory", "head_from": "inventory"}
    assert [line["read_at"] for line in mixed.objects] == [own] * len(ODD_KEYS)


async def test_object_of_which_the_report_does_not_have_all_is_read(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    for key in ("again", "changed", "deleted", "owner", "same", "twice", "unavailable", "unowned"):
        bucket.put(key, b"x", acl="public-read" if key == "twice" else "private")
    bucket.put("owner", b"x", owner=STRANGER)
    bucket.put("younger", b"x", last_modified=CREATED + timedelta(seconds=1))
    rows = {row["Key"]: row for row in rows_of(bucket)}
    rows["owner"]["ObjectOwner"] = OWNER
    rows["unavailable"].update(ObjectAccessControlList=acl_field(None), ObjectOwner="UNAVAILABLE")
    rows["unowned"].update(ObjectOwner="")
    contradicting = {**rows["twice"], "ObjectAccessControlList": acl_field(None)}
    report_of(stub, bucket, rows=[*rows.values(), contradicting, rows["twice"]])
    bucket.put("again", b"x", acl="public-read", last_modified=CREATED - timedelta(days=1))
    bucket.put("changed", b"y", acl="public-read")
    bucket.put("new", b"x", acl="public-read")
    bucket.objects.remove("deleted")
    mixed = await audit(stub, tmp_path, only=BY_REPORT, **MIXED)
    read = ["again", "changed", "new", "twice", "younger"]
    assert [line["key"] for line in mixed.objects if "read_at" not in line] == read
    exposed = [line["key"] for line in mixed.objects if line["verdict"] == "exposed"]
    assert exposed == ["again", "changed", "new", "twice"]
    assert mixed.line("owner")["read_at"]["acl"] is None
    assert (mixed.summary["calls"]["acl"], mixed.summary["calls"]["head"]) == (8, 5)


async def test_missing_column_costs_a_call_for_each_object(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    for number in range(5):
        bucket.put(f"{number}", b"x", acl="public-read", sse=None)
    for column, calls in (("EncryptionStatus", (0, 5)), ("ObjectAccessControlList", (5, 0)), ("ObjectOwner", (5, 0))):
        report_of(stub, bucket, columns=[one for one in CURRENT if one != column])
        mixed = await audit(stub, tmp_path, only=BY_REPORT, **MIXED)
        assert (mixed.summary["calls"]["acl"], mixed.summary["calls"]["head"]) == calls, column
        assert mixed.summary["rules"] == {"O02": 5, "E01": 5}, column


async def test_only_what_a_report_lacks_is_asked(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    """An empty cell is no pass; a report has no KMS key; only exposed pages are judged; a denied call is a hole."""
    key = "arn:aws:kms:us-east-1:444455556666:key/0a"
    bucket.put("failed", b"x", headers={"x-amz-replication-status": "FAILED"})
    bucket.put("kms", b"x", sse="aws:kms", kms_key=key)
    bucket.put("page", b"x", content_type="text/html", acl="public-read")
    bucket.put("closed page", b"x", content_type="text/html")
    rows = [{**row, "ReplicationStatus": ""} for row in rows_of(bucket)]
    report_of(stub, bucket, rows=rows)
    for only, rules, heads in (
        (("R01",), {"R01": 1}, 4),
        (("E01", "E04"), {"E04": 1}, 1),
        (("O02", "M04"), {"O02": 1, "M04": 1}, 2),  # the key decides who can read the one under it
    ):
        mixed = await audit(stub, tmp_path, only=only, **MIXED)
        assert (mixed.summary["rules"], mixed.summary["calls"]["head"]) == (rules, heads)
    bucket.put("new", b"x", deny={"acl", "head"})
    bucket.objects.versions("closed page")[0].deny = {"acl", "head"}
    mixed = await audit(stub, tmp_path, only=BY_REPORT, **MIXED)
    assert [line["key"] for line in mixed.undecided] == ["new"]


async def aged(stub: StubServer, out: Path, **limits: int) -> Result:
    """Audit 36 hours after the report. limits: the largest ages of facts, in hours."""
    keep = ReusePolicy({name: hours * 3600.0 for name, hours in limits.items()})
    clock = partial(float, CREATED.timestamp() + 36 * 3600)
    return await audit(stub, out, only=BY_REPORT, keep=keep, clock=clock, **MIXED)


async def test_fact_past_its_limit_is_read(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    """The ages of `keep` hold for the facts of a report, too."""
    for number in range(5):
        bucket.put(f"{number}", b"x")
    report_of(stub, bucket)
    for limits, calls in (
        ({"acl": 36, "head": 36}, (0, 0)),
        ({"acl": 35, "head": 36}, (5, 0)),
        ({"acl": 36, "head": 35}, (0, 5)),
        ({"acl": 36, "head": 36, "encryption": 35}, (0, 5)),
        ({"head": 36}, (0, 0)),
    ):
        found = (await aged(stub, tmp_path / str(limits), **limits)).summary
        assert (found["calls"]["acl"], found["calls"]["head"]) == calls, limits
        kept = {name: (found["kept"][name]["inventory"], found["kept"][name]["oldest"]) for name in ("acl", "head")}
        none, all_five = (0, None), (5, "2026-03-04T01:02:00Z")
        assert kept == {"acl": none if calls[0] else all_five, "head": none if calls[1] else all_five}, limits
    with pytest.raises(InventoryError, match="is from 2026-03-04T01:02:00Z, and no fact may be older than 2026-03-04"):
        await aged(stub, tmp_path, acl=35, head=35)
    before = partial(float, CREATED.timestamp() - 3600)
    with pytest.raises(InventoryError, match="is from 2026-03-04T01:02:00Z, which is in the future"):
        await audit(stub, tmp_path, only=BY_REPORT, clock=before, **MIXED)


async def test_whole_head_of_the_last_run_goes_with_the_acl_of_the_report(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    for number in range(5):
        bucket.put(f"{number}", b"x", last_modified=CREATED - timedelta(days=9))
    keep = ReusePolicy({"acl": 86_400.0 * 3, "head": 86_400.0 * 900})
    await audit(stub, tmp_path, keep=keep, clock=partial(float, CREATED.timestamp() - 86_400))
    report_of(stub, bucket)
    second = await audit(stub, tmp_path, keep=keep, clock=partial(float, CREATED.timestamp() + 3600), **MIXED)
    assert (second.summary["calls"]["acl"], second.summary["calls"]["head"]) == (0, 0)
    sources = {(line["read_at"]["acl_from"], line["read_at"]["head_from"]) for line in second.objects}
    assert sources == {("inventory", "run")}
    assert {line["head_state"] for line in second.objects} == {"read"}


async def test_partial_head_of_a_report_is_not_kept_by_the_next_night(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    bucket.put("k", b"x")
    report_of(stub, bucket)
    settings: dict[str, Any] = {"only": BY_REPORT, "keep": ReusePolicy({"acl": 90 * DAY, "head": 90 * DAY})}
    nights = Nights(stub, tmp_path, **settings)
    nights.now = CREATED.timestamp() + 3600
    first = await nights.night(**MIXED)
    assert first.line("k")["head_state"] == "partial"
    await nights.night()
    assert asked(stub) == (0, 1)


async def test_damaged_report_is_named_and_an_older_one_used(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    bucket.put("k", b"x")
    report_of(stub, bucket, created=datetime(2026, 3, 1, tzinfo=UTC))
    newest = report_of(stub, bucket)
    stub.world.buckets["reports"].put(newest.files[0], b"no gzip")
    mixed = await audit(stub, tmp_path, only=ONLY_ACLS, **MIXED)
    (said,) = [words for words in mixed.summary["not_looked_at"] if "refused" in words]
    assert said.startswith(f"1 newer S3 Inventory report, refused: s3://reports/{newest.files[0]} is not gzipped CSV")
    assert mixed.line("k")["read_at"]["acl"] == "2026-03-01T00:00:00Z"
    assert any("2026-03-01T00:00:00Z" in words and "S3 Inventory" in words for words in mixed.summary["not_looked_at"])


async def test_interrupted_run_goes_on_with_the_report(stub: StubServer, samples: StubBucket, tmp_path: Path) -> None:
    report_of(stub, samples)
    whole = await audit(stub, tmp_path / "whole", **MIXED)
    first = await audit(stub, tmp_path / "cut", max_calls=60, part_lines=20, **MIXED)
    assert not first.summary["complete"]
    rest = await audit(stub, tmp_path / "cut", resume=first.summary["run"], **MIXED)
    assert (rest.summary["complete"], shared(rest.objects)) == (True, shared(whole.objects))
    stop = Stop()
    stop.set("a test")
    with pytest.raises(RunStopped):
        await audit(stub, tmp_path / "stopped", stop=stop, **MIXED)
