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
from msgspec.structs import replace

from auditor.aio.stop import Stop
from auditor.audit.again import JudgeAgain
from auditor.audit.judged_by import judged_by
from auditor.config.layers import Layer
from auditor.errors import InventoryError, RunStopped
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, PublicAccessBlock, Semantics
from auditor.model.object import ALL_USERS, Grant
from auditor.model.reuse import HEAD, Keep
from auditor.runs.reading import RunReader
from auditor.runs.stores.local import LocalStore
from auditor.s3.inventory.fields import CSV
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
from tests.support.servers.samples import SAMPLES, sample_bucket, sample_kind
from tests.support.servers.stub import StubServer
from tests.support.servers.world import OWNER, STRANGER, Odd, StubBucket

COUNT: Final = 150
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
def versions(stub: StubServer, bucket: StubBucket) -> StubBucket:
    """The stub's bucket with versions of every kind, a null version, and delete markers."""
    bucket.put("before versioning", b"null")
    bucket.versioning = "Enabled"
    for number in range(90):
        key = f"key {number % 30:02d}"
        bucket.put(key, f"{number}".encode(), **SAMPLES[sample_kind(number)])
        if number % 7 == 0:
            bucket.delete(key)
    bucket.delete("only a marker")
    return allowed(bucket)


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


class TestAgreement:
    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("rules", [(), BY_REPORT, ONLY_ACLS], ids=["all", "report", "acls"])
    async def test_current_objects(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path, form: str, rules: tuple[str, ...]
    ) -> None:
        report_of(stub, samples, form=form, files=3)
        live = await audit(stub, tmp_path / "live", only=rules)
        mixed = await audit(stub, tmp_path / "mixed", only=rules, **MIXED)
        states = assert_agree(live.objects, mixed.objects)
        assert same_findings(live, mixed)
        assert mixed.summary["calls"]["acl"] < live.summary["calls"]["acl"] / 5
        assert bool(states["partial"]) is (rules == BY_REPORT)

    @pytest.mark.parametrize("form", FORMS)
    async def test_versions(self, stub: StubServer, versions: StubBucket, tmp_path: Path, form: str) -> None:
        report_of(stub, versions, versions=True, form=form)
        live = await audit(stub, tmp_path / "live", versions=True)
        mixed = await audit(stub, tmp_path / "mixed", versions=True, **MIXED)
        assert_agree(live.objects, mixed.objects)
        assert same_findings(live, mixed)
        assert live.coverage == mixed.coverage
        assert mixed.summary["calls"]["acl"] < live.summary["calls"]["acl"] / 5

    async def test_report_on_versions_for_current_objects(
        self, stub: StubServer, versions: StubBucket, tmp_path: Path
    ) -> None:
        report_of(stub, versions, versions=True)
        live = await audit(stub, tmp_path / "live", only=BY_REPORT)
        assert_agree(live.objects, (await audit(stub, tmp_path / "mixed", only=BY_REPORT, **MIXED)).objects)

    async def test_grants_that_a_block_hides(self, stub: StubServer, samples: StubBucket, tmp_path: Path) -> None:
        samples.public_access_block = PublicAccessBlock(ignore_public_acls=True)
        report_of(stub, samples)
        live = await audit(stub, tmp_path / "live", semantics=Semantics.AWS, only=ONLY_ACLS)
        mixed = await audit(stub, tmp_path / "mixed", semantics=Semantics.AWS, only=ONLY_ACLS, **MIXED)
        assert_agree(live.objects, as_seen_live(mixed.objects))

    @pytest.mark.parametrize("ownership", [BUCKET_OWNER_ENFORCED, "ObjectWriter"])
    async def test_acls_that_may_be_off(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path, ownership: str
    ) -> None:
        samples.ownership, samples.odd["GetBucketOwnershipControls"] = ownership, Odd.DENIED
        report_of(stub, samples)
        live = await audit(stub, tmp_path / "live", only=ONLY_ACLS)
        mixed = await audit(stub, tmp_path / "mixed", only=ONLY_ACLS, **MIXED)
        assert_agree(live.objects, mixed.objects)
        assert 0 < mixed.summary["calls"]["acl"] < live.summary["calls"]["acl"]

    async def test_acls_off(self, stub: StubServer, samples: StubBucket, tmp_path: Path) -> None:
        samples.ownership = BUCKET_OWNER_ENFORCED
        report_of(stub, samples)
        live = await audit(stub, tmp_path / "live")
        mixed = await audit(stub, tmp_path / "mixed", ignore=("O13",), **MIXED)
        assert_agree(live.objects, as_seen_live(mixed.objects))


async def test_head_of_the_last_run_lacks_the_values_that_a_report_asks_for(
    stub: StubServer, bucket: StubBucket, tmp_path: Path
) -> None:
    """The last run saw no public grant, and stored the names of metadata alone. The report has the grant."""
    bucket.put("k", b"x", acl="public-read", headers={"x-amz-meta-password": "hunter2hunter2"})
    bucket.public_access_block = PublicAccessBlock(ignore_public_acls=True)
    report_of(stub, bucket)
    nights = Nights(stub, tmp_path, only=("O02", "O15"), semantics=Semantics.AWS, keep=Keep({HEAD: 3650 * DAY}))
    await nights.night()
    bucket.public_access_block = None
    mixed = await nights.night(**MIXED)
    assert sorted(line["rule"] for line in mixed.findings) == ["O02", "O15"]
    assert asked(stub) == (0, 1)


def judged_again(runs: Path, run_id: str, out: Path) -> Result:
    run = RunReader(LocalStore(runs), BUCKET, run_id)
    by = judged_by(run.begun_with, "auditor.toml", Layer({}, str))
    return read_back(JudgeAgain(run, LocalStore(out), by).run().to_dict())


class TestHiddenGrants:
    """Grants that are stored and count for nothing today."""

    @pytest.fixture
    def opened(self, bucket: StubBucket) -> StubBucket:
        bucket.put("private", b"x")
        bucket.put("public", b"x", acl="public-read")
        bucket.put("shared", b"x", grants=(Grant(OWNER, "FULL_CONTROL"), Grant(STRANGER, "READ")))
        bucket.put("foreign", b"x", owner=STRANGER)
        return bucket

    async def test_with_acls_off(self, stub: StubServer, opened: StubBucket, tmp_path: Path) -> None:
        report_of(stub, opened)
        opened.ownership = BUCKET_OWNER_ENFORCED
        mixed = await audit(stub, tmp_path, only=("O02", "O08", "O13", "E01"), semantics=Semantics.AWS, **MIXED)
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
        assert {line["key"]: line["verdict"] for line in mixed.objects} == {
            "private": "private",
            "public": "dormant",
            "shared": "dormant",
            "foreign": "dormant",
        }
        assert mixed.summary["verdicts"]["dormant"] == 3
        assert mixed.line("foreign")["reasons"][-1] == f"stored-owner: {STRANGER}"
        assert mixed.line("public")["audience"] == []
        assert mixed.summary["verdicts"]["exposed"] == 0

    async def test_under_a_block_only_public_grants_are_hidden(
        self, stub: StubServer, opened: StubBucket, tmp_path: Path
    ) -> None:
        report_of(stub, opened)
        opened.public_access_block = PublicAccessBlock(ignore_public_acls=True)
        mixed = await audit(stub, tmp_path, only=("O02", "O08", "O13"), semantics=Semantics.AWS, **MIXED)
        found = sorted((line["key"], line["rule"], line["grantee"]) for line in mixed.findings)
        assert found == [("public", "O13", ALL_USERS), ("shared", "O08", STRANGER)]
        assert mixed.line("public")["acl"]["grants"] == [{"grantee": OWNER, "permission": "FULL_CONTROL"}]

    async def test_grants_in_force_are_not_hidden(self, stub: StubServer, opened: StubBucket, tmp_path: Path) -> None:
        report_of(stub, opened)
        mixed = await audit(stub, tmp_path, only=("O02", "O13"), **MIXED)
        assert mixed.summary["rules"] == {"O02": 1}
        assert not [line for line in mixed.objects if "dormant" in line]
        assert mixed.summary["verdicts"]["dormant"] == 0

    async def test_trusted_account_is_no_finding(self, stub: StubServer, opened: StubBucket, tmp_path: Path) -> None:
        report_of(stub, opened)
        opened.ownership = BUCKET_OWNER_ENFORCED
        mixed = await audit(stub, tmp_path, only=("O13",), trusted=frozenset({STRANGER}), **MIXED)
        assert [line["key"] for line in mixed.findings] == ["public"]
        assert [line["key"] for line in mixed.objects if line["verdict"] == "dormant"] == ["public"]

    async def test_object_that_was_written_since_has_none(
        self, stub: StubServer, opened: StubBucket, tmp_path: Path
    ) -> None:
        report_of(stub, opened)
        opened.ownership = BUCKET_OWNER_ENFORCED
        opened.put("public", b"new")
        mixed = await audit(stub, tmp_path, only=("O13",), **MIXED)
        assert sorted(line["key"] for line in mixed.findings) == ["foreign", "shared"]
        assert (
            "hidden grants of 1 object whose ACL the report does not have as they are listed"
            in mixed.summary["not_looked_at"]
        )

    async def test_live_audit_sees_none_and_is_complete(
        self, stub: StubServer, opened: StubBucket, tmp_path: Path
    ) -> None:
        opened.ownership = BUCKET_OWNER_ENFORCED
        live = await audit(stub, tmp_path, only=("O13", "K01"))
        assert (live.findings, live.summary["rules_undecided"]) == ([], [])

    async def test_run_that_is_judged_again_finds_the_same(
        self, stub: StubServer, opened: StubBucket, tmp_path: Path
    ) -> None:
        report_of(stub, opened)
        opened.ownership = BUCKET_OWNER_ENFORCED
        mixed = await audit(stub, tmp_path / "runs", only=("O13", "E01"), **MIXED)
        again = await asyncio.to_thread(judged_again, tmp_path / "runs", mixed.summary["run"], tmp_path / "again")
        assert same_findings(mixed, again)


class TestCalls:
    async def test_unchanged_objects_need_none(self, stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
        for key in ODD_KEYS.values():
            bucket.put(key, b"x", acl="public-read")
        report_of(stub, bucket)
        mixed = await audit(stub, tmp_path, only=BY_REPORT, **MIXED)
        assert (mixed.summary["calls"]["acl"], mixed.summary["calls"]["head"]) == (0, 0)
        assert mixed.summary["verdicts"]["exposed"] == len(ODD_KEYS)
        at = {"acl": "2026-03-04T01:02:00Z", "head": "2026-03-04T01:02:00Z"}
        assert {json.dumps(line["read_at"], sort_keys=True) for line in mixed.objects} == {
            json.dumps({**at, "acl_from": "inventory", "head_from": "inventory"}, sort_keys=True)
        }

    async def test_object_that_is_new_changed_or_unavailable_is_read(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path
    ) -> None:
        for key in ("changed", "deleted", "same", "unavailable", "unowned"):
            bucket.put(key, b"x")
        rows = rows_of(bucket)
        for row in rows:
            if row["Key"] == "unavailable":
                row.update(ObjectAccessControlList=acl_field(None), ObjectOwner="UNAVAILABLE")
            if row["Key"] == "unowned":
                row.update(ObjectOwner="")
        report_of(stub, bucket, rows=rows)
        bucket.put("changed", b"y", acl="public-read")
        bucket.put("new", b"x", acl="public-read")
        bucket.objects.remove("deleted")
        mixed = await audit(stub, tmp_path, only=BY_REPORT, **MIXED)
        assert [line["key"] for line in mixed.objects if "read_at" not in line] == ["changed", "new"]
        assert [line["key"] for line in mixed.objects if line["verdict"] == "exposed"] == ["changed", "new"]
        assert (mixed.summary["calls"]["acl"], mixed.summary["calls"]["head"]) == (4, 2)

    async def test_same_bytes_written_again_are_read(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path
    ) -> None:
        bucket.put("k", b"x")
        report_of(stub, bucket)
        bucket.put("k", b"x", acl="public-read", last_modified=CREATED - timedelta(days=1))
        assert (await audit(stub, tmp_path, only=ONLY_ACLS, **MIXED)).line("k")["verdict"] == "exposed"

    async def test_object_that_is_younger_than_the_report_is_read(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path
    ) -> None:
        bucket.put("k", b"x", last_modified=CREATED + timedelta(seconds=1))
        report_of(stub, bucket)
        assert "read_at" not in (await audit(stub, tmp_path, only=ONLY_ACLS, **MIXED)).line("k")

    async def test_owner_who_is_another_one_by_now_is_read(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path
    ) -> None:
        bucket.put("k", b"x", owner=STRANGER)
        rows = [{**row, "ObjectOwner": OWNER} for row in rows_of(bucket)]
        report_of(stub, bucket, rows=rows)
        assert (await audit(stub, tmp_path, only=ONLY_ACLS, **MIXED)).line("k")["owner"] == STRANGER

    async def test_rows_that_contradict_each_other_are_no_facts(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path
    ) -> None:
        bucket.put("k", b"x", acl="public-read")
        (row,) = rows_of(bucket)
        private = {**row, "ObjectAccessControlList": acl_field(None)}
        report_of(stub, bucket, rows=[row, private, row])
        found = await audit(stub, tmp_path, only=ONLY_ACLS, **MIXED)
        assert "read_at" not in found.line("k")
        assert found.line("k")["verdict"] == "exposed"

    @pytest.mark.parametrize("column", ["EncryptionStatus", "ObjectAccessControlList", "ObjectOwner"])
    async def test_missing_column_costs_a_call_for_each_object(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path, column: str
    ) -> None:
        for number in range(5):
            bucket.put(f"{number}", b"x", acl="public-read", sse=None)
        report_of(stub, bucket, columns=[one for one in CURRENT if one != column])
        mixed = await audit(stub, tmp_path, only=BY_REPORT, **MIXED)
        calls = {"EncryptionStatus": (0, 5)}.get(column, (5, 0))
        assert (mixed.summary["calls"]["acl"], mixed.summary["calls"]["head"]) == calls
        assert mixed.summary["rules"] == {"O02": 5, "E01": 5}

    async def test_empty_column_is_unread_and_no_pass(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path
    ) -> None:
        bucket.put("failed", b"x", headers={"x-amz-replication-status": "FAILED"})
        bucket.put("none", b"x")
        rows = [{**row, "ReplicationStatus": ""} for row in rows_of(bucket)]
        report_of(stub, bucket, rows=rows)
        mixed = await audit(stub, tmp_path, only=("R01",), **MIXED)
        assert mixed.summary["rules"] == {"R01": 1}
        assert mixed.summary["calls"]["head"] == 2

    async def test_a_kms_key_is_not_in_a_report(self, stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
        key = "arn:aws:kms:us-east-1:444455556666:key/0a"
        bucket.put("kms", b"x", sse="aws:kms", kms_key=key)
        bucket.put("plain", b"x")
        report_of(stub, bucket)
        mixed = await audit(stub, tmp_path, only=("E01", "E04"), **MIXED)
        assert (mixed.summary["rules"], mixed.summary["calls"]["head"]) == ({"E04": 1}, 1)

    async def test_rule_on_exposed_objects_reads_those_alone(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path
    ) -> None:
        for number in range(20):
            bucket.put(f"{number}.html", b"x", content_type="text/html", acl="private" if number else "public-read")
        report_of(stub, bucket)
        mixed = await audit(stub, tmp_path, only=("O02", "M04", "E01"), **MIXED)
        assert (mixed.summary["rules"]["M04"], mixed.summary["calls"]["head"]) == (1, 1)

    async def test_denied_call_is_undecided_all_the_same(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path
    ) -> None:
        bucket.put("new", b"x", deny={"acl", "head"})
        bucket.put("old", b"x", deny={"acl", "head"})
        report_of(stub, bucket, rows=[row for row in rows_of(bucket) if row["Key"] == "old"])
        mixed = await audit(stub, tmp_path, only=BY_REPORT, **MIXED)
        assert [line["key"] for line in mixed.undecided] == ["new"]


class TestLimits:
    """The ages of `keep` hold for the facts of a report, too."""

    NOW: Final = CREATED.timestamp() + 36 * 3600

    async def mixed(self, stub: StubServer, out: Path, **limits: float) -> Result:
        keep = Keep({name: 3600.0 * hours for name, hours in limits.items()})
        clock = partial(float, self.NOW)
        return await audit(stub, out, only=BY_REPORT, keep=keep, clock=clock, **MIXED)

    @pytest.mark.parametrize(
        ("limits", "calls"),
        [
            ({"acl": 36, "head": 36}, (0, 0)),
            ({"acl": 35, "head": 36}, (5, 0)),
            ({"acl": 36, "head": 35}, (0, 5)),
            ({"acl": 36, "head": 36, "encryption": 35}, (0, 5)),
            ({"head": 36}, (0, 0)),
        ],
    )
    async def test_fact_past_its_limit_is_read(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path, limits: dict[str, float], calls: tuple[int, int]
    ) -> None:
        for number in range(5):
            bucket.put(f"{number}", b"x")
        report_of(stub, bucket)
        found = (await self.mixed(stub, tmp_path, **limits)).summary
        assert (found["calls"]["acl"], found["calls"]["head"]) == calls
        kept = {name: (found["kept"][name]["inventory"], found["kept"][name]["oldest"]) for name in ("acl", "head")}
        none, all_five = (0, None), (5, "2026-03-04T01:02:00Z")
        assert kept == {"acl": none if calls[0] else all_five, "head": none if calls[1] else all_five}

    async def test_report_past_all_limits_is_refused(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path
    ) -> None:
        report_of(stub, bucket)
        with pytest.raises(
            InventoryError, match="is from 2026-03-04T01:02:00Z, and no fact may be older than 2026-03-04"
        ):
            await self.mixed(stub, tmp_path, acl=35, head=35)

    async def test_report_of_the_future_has_no_age_and_is_refused(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path
    ) -> None:
        report_of(stub, bucket)
        before = partial(float, CREATED.timestamp() - 3600)
        with pytest.raises(InventoryError, match="is from 2026-03-04T01:02:00Z, which is in the future"):
            await audit(stub, tmp_path, only=BY_REPORT, clock=before, **MIXED)

    async def test_whole_head_of_the_last_run_goes_with_the_acl_of_the_report(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path
    ) -> None:
        for number in range(5):
            bucket.put(f"{number}", b"x", last_modified=CREATED - timedelta(days=9))
        keep = Keep({"acl": 86_400.0 * 3, "head": 86_400.0 * 900})
        first = CREATED.timestamp() - 86_400
        await audit(stub, tmp_path, keep=keep, clock=partial(float, first))
        report_of(stub, bucket)
        second = await audit(stub, tmp_path, keep=keep, clock=partial(float, CREATED.timestamp() + 3600), **MIXED)
        assert (second.summary["calls"]["acl"], second.summary["calls"]["head"]) == (0, 0)
        assert {(line["read_at"]["acl_from"], line["read_at"]["head_from"]) for line in second.objects} == {
            ("inventory", "run")
        }
        assert {line["head_state"] for line in second.objects} == {"read"}


class TestReports:
    async def test_damaged_report_is_named_and_an_older_one_used(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path
    ) -> None:
        bucket.put("k", b"x")
        report_of(stub, bucket, created=datetime(2026, 3, 1, tzinfo=UTC))
        newest = report_of(stub, bucket)
        stub.world.buckets["reports"].put(newest.files[0], b"no gzip")
        mixed = await audit(stub, tmp_path, only=ONLY_ACLS, **MIXED)
        (said,) = [words for words in mixed.summary["not_looked_at"] if "refused" in words]
        assert said.startswith(
            f"1 newer S3 Inventory report, refused: s3://reports/{newest.files[0]} is not gzipped CSV"
        )
        assert mixed.line("k")["read_at"]["acl"] == "2026-03-01T00:00:00Z"
        assert any(
            "2026-03-01T00:00:00Z" in words and "S3 Inventory" in words for words in mixed.summary["not_looked_at"]
        )

    async def test_without_a_report_nothing_is_audited(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path
    ) -> None:
        stub.world.add("reports")
        with pytest.raises(InventoryError, match="has no inventory report of the bucket"):
            await audit(stub, tmp_path, **MIXED)
        assert not (tmp_path / f"bucket={BUCKET}").exists()

    async def test_stop_before_the_listing_is_one_sentence(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path
    ) -> None:
        bucket.put("k", b"x")
        report_of(stub, bucket)
        stop = Stop()
        stop.set("a test")
        with pytest.raises(RunStopped):
            await audit(stub, tmp_path, stop=stop, **MIXED)

    async def test_interrupted_run_goes_on_with_the_report(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path
    ) -> None:
        report_of(stub, samples)
        whole = await audit(stub, tmp_path / "whole", **MIXED)
        first = await audit(stub, tmp_path / "cut", max_calls=80, part_lines=20, **MIXED)
        assert not first.summary["complete"]
        rest = await audit(stub, tmp_path / "cut", resume=first.summary["run"], **MIXED)
        assert (rest.summary["complete"], shared(rest.objects)) == (True, shared(whole.objects))

    async def test_grant_in_a_report_keeps_its_form(self, stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
        bucket.put(
            "k", b"x", grants=(Grant(OWNER, "FULL_CONTROL"), Grant(ALL_USERS, "READ"), Grant(STRANGER, "READ_ACP"))
        )
        report_of(stub, bucket, form=CSV, files=1)
        line = (await audit(stub, tmp_path, only=ONLY_ACLS, **MIXED)).line("k")
        assert line["acl"]["owner"] == OWNER
        assert [(one["grantee"], one["permission"]) for one in line["acl"]["grants"]] == [
            (OWNER, "FULL_CONTROL"),
            (ALL_USERS, "READ"),
            (STRANGER, "READ_ACP"),
        ]


def test_partial_head_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    from auditor.model.line_records import read_line
    from auditor.model.object import ObjectRef
    from auditor.model.run_lines import ObjectLine
    from auditor.s3.inventory.facts import FACT_COLUMNS, facts_of
    from tests.support.encoded_lines import encode_object
    from tests.support.samples.reports import judged

    cells = {"EncryptionStatus": "SSE-S3", "ObjectLockMode": "GOVERNANCE"}
    ref = ObjectRef("k", "e", 3, "2026-01-02T03:04:05Z", storage_class="GLACIER_IR")
    head = facts_of(tuple(cells.get(one, "") for one in FACT_COLUMNS)).head(ref)
    assert head is not None
    judgement = judged("k")
    judgement = replace(judgement, evidence=replace(judgement.evidence, ref=ref, head=head))
    assert read_line(ObjectLine, encode_object(judgement, None)).head == head
