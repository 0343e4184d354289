"""Whole audits against the stub, by both engines; every summary is checked against the lines of its folder."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from auditor.aio.stop import Stop
from auditor.ledger import open_ledger
from auditor.model.bucket import BUCKET_OWNER_ENFORCED
from auditor.model.json_codec import plain
from auditor.model.target import Target
from auditor.rules.plan import ACLS_DISABLED, NOT_NEEDED
from auditor.s3.engines import ENGINES
from tests.support.audit_runs import Line, Result, audit, without
from tests.support.engine_names import OURS_FIRST
from tests.support.loop_blocking import free_loop as free_loop
from tests.support.servers.clients import BUCKET
from tests.support.servers.samples import SAMPLES, sample_bucket, sample_kind
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import (
    ACCESS_DENIED,
    CUT,
    INTERNAL_ERROR,
    RESET,
    SLOW_DOWN,
    TRANSIENT,
    VANISH,
    Fault,
    first_n,
    on_keys,
    random_faults,
)
from tests.support.servers.world import OWNER, STRANGER, StubBucket

COUNT: Final = 120


@pytest.fixture(params=OURS_FIRST)
def engine(request: pytest.FixtureRequest) -> str:
    """An engine's name."""
    return str(request.param)


@pytest.fixture
def samples(stub: StubServer) -> StubBucket:
    """The stub's bucket with objects of every kind, odd keys first."""
    stub.world.buckets[BUCKET] = sample_bucket(COUNT)
    return stub.world.buckets[BUCKET]


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
    return bucket


def findings_of(result: Result) -> list[Line]:
    return sorted(without(result.findings, "since"), key=lambda line: line["fingerprint"])


class TestMixedBucket:
    async def test_every_object_has_an_outcome(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        result = await audit(stub, tmp_path, engine=engine)
        kinds = {key: sample_kind(number) for number, key in enumerate(_put_order(samples))}
        undecided = {key for key, kind in kinds.items() if kind in {"denied-acl", "denied-head", "sse-c"}}
        assert result.summary["complete"]
        assert result.summary["engine"] == engine
        assert result.coverage == {
            "listed": COUNT,
            "audited": COUNT - len(undecided),
            "vanished": 0,
            "undecided": len(undecided),
            "delete_markers": 0,
        }
        assert {line["key"] for line in result.undecided} == undecided
        assert result.code == 4
        codes = {line["key"]: line["unread"] for line in result.undecided}
        for key, unread in codes.items():
            assert (
                unread
                == {
                    "denied-acl": [{"action": "GetObjectAcl", "code": "AccessDenied"}],
                    "denied-head": [{"action": "HeadObject", "code": "403"}],
                    "sse-c": [{"action": "HeadObject", "code": "SSE-C"}],
                }[kinds[key]]
            )

    async def test_verdicts_and_rules_by_kind(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        result = await audit(stub, tmp_path, engine=engine, ignore=("K01",))
        expected: Mapping[str, tuple[str, list[str]]] = {
            "private": ("private", []),
            "public-read": ("exposed", ["O02"]),
            "authenticated-read": ("exposed", ["O04"]),
            "public-write-acp": ("exposed", ["O01"]),
            "public-read-acp": ("exposed", ["O05"]),
            "stranger-read": ("shared", ["O08"]),
            "stranger-full": ("shared", ["O07"]),
            "foreign-owner": ("shared", ["O09", "O11"]),
            "unencrypted": ("private", ["E01"]),
            "kms": ("private", []),
            "archived": ("private", []),
            "denied-acl": ("unknown", []),
        }
        found = {}
        for number, key in enumerate(_put_order(samples)):
            line = result.line(key)
            found[sample_kind(number)] = (line["verdict"], line["rules"])
        assert {kind: found[kind] for kind in expected} == dict(expected)

    async def test_engines_write_equal_lines(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        other = next(name for name in ENGINES if name != engine)
        mine = await audit(stub, tmp_path, engine=engine)
        theirs = await audit(stub, tmp_path, engine=other)
        assert mine.undated == theirs.undated
        assert findings_of(mine) == findings_of(theirs)
        assert mine.undecided == theirs.undecided

    async def test_metadata_is_kept_by_name_only_unless_asked(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        bucket.put("k", metadata={"secret": "hunter2"})
        names = await audit(stub, tmp_path, engine=engine)
        values = await audit(stub, tmp_path, engine=engine, keep_metadata=True)
        assert names.line("k")["head"]["metadata"] == ["secret"]
        assert values.line("k")["head"]["metadata"] == {"secret": "hunter2"}

    async def test_several_parts_are_one_listing(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        whole = await audit(stub, tmp_path, engine=engine)
        parted = await audit(stub, tmp_path, engine=engine, part_lines=7)
        assert len(list((parted.folder / "objects").iterdir())) == -(-COUNT // 7)
        assert parted.undated == whole.undated

    async def test_prefix_and_key_range(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        target = Target(BUCKET, "plain/", start_after="plain/0000050.txt", stop_at="plain/0000060.txt")
        result = await audit(stub, tmp_path, engine=engine, target=target)
        assert [line["key"] for line in result.objects] == [f"plain/{number:07d}.txt" for number in range(51, 61)]
        assert result.summary["target"] == plain(target)

    async def test_empty_bucket_is_complete(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        result = await audit(stub, tmp_path, engine=engine)
        assert result.summary["complete"]
        assert result.coverage["listed"] == 0


def _put_order(bucket: StubBucket) -> list[str]:
    """Keys in the order in which sample_bucket made them, found by their bodies, "object N"."""
    objects = [bucket.objects.versions(key)[0] for key in bucket.objects.keys]
    ordered = sorted(objects, key=lambda item: int(item.read().split()[1]))
    return [item.key for item in ordered]


class TestVersions:
    async def test_every_version_has_an_outcome_and_markers_are_counted(
        self, stub: StubServer, versions: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        result = await audit(stub, tmp_path, engine=engine, versions=True)
        assert result.coverage["listed"] == 91
        assert result.coverage["delete_markers"] == 14
        assert result.line("before versioning")["version_id"] == "null"
        asked = [call for call in stub.calls if call.operation in {"GetObjectAcl", "HeadObject"}]
        assert all(call.version_id for call in asked)
        of = Counter(call.operation for call in asked)
        assert of["HeadObject"] == 91
        # A HEAD's bare 400 is called SSE-C when an ACL that was asked after it was answered.
        refused = sum(line["unread"] == [{"action": "HeadObject", "code": "SSE-C"}] for line in result.undecided)
        assert 91 <= of["GetObjectAcl"] <= 91 + refused

    async def test_engines_write_equal_lines(
        self, stub: StubServer, versions: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        other = next(name for name in ENGINES if name != engine)
        mine = await audit(stub, tmp_path, engine=engine, versions=True, part_lines=10)
        theirs = await audit(stub, tmp_path, engine=other, versions=True)
        assert mine.undated == theirs.undated
        assert findings_of(mine) == findings_of(theirs)
        assert mine.undecided == theirs.undecided
        assert mine.coverage == theirs.coverage

    async def test_without_versions_only_the_current_ones(
        self, stub: StubServer, versions: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        result = await audit(stub, tmp_path, engine=engine)
        assert result.coverage["delete_markers"] == 0
        assert all(line["version_id"] is None for line in result.objects)
        assert stub.count("ListObjectVersions") == 0


class TestFaults:
    @pytest.mark.parametrize(
        "kinds", [(SLOW_DOWN,), (RESET,), (INTERNAL_ERROR,), TRANSIENT], ids=["503", "reset", "500", "all"]
    )
    @pytest.mark.slow
    async def test_thirty_percent_of_the_calls_fail_and_nothing_is_lost(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path, engine: str, kinds: tuple[Fault, ...]
    ) -> None:
        quiet = await audit(stub, tmp_path, engine=engine)
        stub.faults = [random_faults(0.3, seed=7, kinds=kinds)]
        loud = await audit(stub, tmp_path, engine=engine)
        assert loud.undated == quiet.undated
        assert findings_of(loud) == findings_of(quiet)
        assert loud.undecided == quiet.undecided
        assert loud.summary["verdicts"] == quiet.summary["verdicts"]
        assert loud.summary["rules_undecided"] == quiet.summary["rules_undecided"]
        assert loud.summary["calls"]["retried"] > COUNT / 10  # of resets aiohttp sends most once more by itself
        assert (loud.summary["calls"]["throttled"] > 0) is (SLOW_DOWN in kinds)

    async def test_versions_under_faults(
        self, stub: StubServer, versions: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        quiet = await audit(stub, tmp_path, engine=engine, versions=True)
        stub.faults = [random_faults(0.3, seed=3)]
        loud = await audit(stub, tmp_path, engine=engine, versions=True)
        assert loud.undated == quiet.undated
        assert loud.coverage == quiet.coverage

    async def test_object_that_is_throttled_for_ever_is_undecided(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        stub.faults = [on_keys(lambda key: key.endswith("7.txt"), SLOW_DOWN)]
        result = await audit(stub, tmp_path, engine=engine, retry_attempts=2)
        stuck = [line for line in result.undecided if line["key"].endswith("7.txt")]
        assert len(stuck) == sum(key.endswith("7.txt") for key in samples.objects.keys)
        assert stuck[0]["unread"] == [
            {"action": "GetObjectAcl", "code": "SlowDown"},
            {"action": "HeadObject", "code": "503"},
        ]
        assert result.summary["complete"]
        assert result.code == 4

    async def test_gone_between_listing_and_reading(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        leaving = {f"plain/{number:07d}.txt" for number in range(50, 100, 5)}
        stub.faults = [on_keys(lambda key: key in leaving, VANISH)]
        result = await audit(stub, tmp_path, engine=engine)
        assert {line["key"] for line in result.objects if line["outcome"] == "vanished"} == leaving
        assert result.coverage["vanished"] == 10
        assert all(line["verdict"] is None for line in result.objects if line["outcome"] == "vanished")

    async def test_gone_between_acl_and_head(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        stub.faults = [on_keys(lambda key: key == "plain/0000050.txt", VANISH, {"HeadObject"})]
        result = await audit(stub, tmp_path, engine=engine)
        assert result.line("plain/0000050.txt")["outcome"] == "vanished"

    async def test_denied_on_some_keys(self, stub: StubServer, bucket: StubBucket, tmp_path: Path, engine: str) -> None:
        for number in range(40):
            bucket.put(f"{number:02d}")
        stub.faults = [on_keys(lambda key: key.endswith("3"), ACCESS_DENIED)]
        result = await audit(stub, tmp_path, engine=engine)
        assert [line["key"] for line in result.undecided] == ["03", "13", "23", "33"]
        assert result.coverage["audited"] == 36
        assert result.summary["verdicts"]["unknown"] == 4
        assert result.code == 4

    async def test_listing_is_retried_too(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        stub.faults = [first_n(3, SLOW_DOWN, {"ListObjectsV2"})]
        result = await audit(stub, tmp_path, engine=engine)
        assert result.coverage["listed"] == COUNT
        assert result.summary["calls"]["list"] == 4

    async def test_overwritten_since_the_listing(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        bucket.put("k", b"old")

        def overwrite(operation: str, key: str, nth: int) -> None:
            if operation == "GetObjectAcl":
                bucket.put("k", b"newer", sse=None)

        stub.faults = [overwrite]
        result = await audit(stub, tmp_path, engine=engine)
        line = result.line("k")
        assert (line["changed"], line["size"], line["outcome"]) == (True, 5, "audited")
        assert line["etag"] == bucket.objects.versions("k")[0].etag
        assert "E01" in line["rules"]


class TestOnlyWhatIsNeeded:
    async def test_ownership_enforced_sends_no_acl_call_and_says_why(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        samples.ownership = BUCKET_OWNER_ENFORCED
        result = await audit(stub, tmp_path, engine=engine)
        assert stub.count("GetObjectAcl") == 0
        assert stub.count("HeadObject") == COUNT
        assert all(line["acl"] == {"skipped": ACLS_DISABLED} for line in result.objects)
        assert any(ACLS_DISABLED in words for words in result.summary["not_looked_at"])
        assert result.summary["verdicts"]["exposed"] == 0

    async def test_rules_of_the_acl_alone_send_no_head(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        result = await audit(stub, tmp_path, engine=engine, only=("O01", "O02"))
        assert stub.count("HeadObject") == 0
        assert stub.count("GetObjectAcl") == COUNT
        assert all(line["head"] == {"skipped": NOT_NEEDED} for line in result.objects)
        assert {line["rule"] for line in result.findings} == {"O01", "O02"}

    async def test_rules_of_head_alone_send_no_acl_call_and_the_verdict_is_unknown(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        for number in range(5):
            bucket.put(f"{number}")
        result = await audit(stub, tmp_path, engine=engine, only=("E01",))
        assert stub.count("GetObjectAcl") == 0
        assert result.summary["verdicts"]["unknown"] == 5
        assert result.coverage["audited"] == 5
        assert any("ACLs of the objects" in words for words in result.summary["not_looked_at"])

    async def test_rules_of_the_listing_alone_send_neither(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        result = await audit(stub, tmp_path, engine=engine, only=("O09", "K01"))
        assert stub.count("GetObjectAcl") == stub.count("HeadObject") == 0
        foreign = [key for number, key in enumerate(_put_order(samples)) if "foreign" in sample_kind(number)]
        assert {line["key"] for line in result.findings if line["rule"] == "O09"} == set(foreign)

    async def test_owner_is_judged_by_the_listing_where_the_acl_is_denied(
        self, stub: StubServer, bucket: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        bucket.put("k", owner=STRANGER, deny={"acl"})
        result = await audit(stub, tmp_path, engine=engine)
        assert "O09" in result.line("k")["rules"]
        assert "O09" not in result.undecided[0]["rules"]
        assert "O02" in result.undecided[0]["rules"]


class TestHashing:
    async def test_every_object_is_in_one_of_five_states(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        kinds = [sample_kind(number) for number in range(COUNT)]
        unhashable = sum(kind in {"archived", "sse-c", "denied-head"} for kind in kinds)
        async with open_ledger(f"sqlite:{tmp_path / 'ledger.db'}") as ledger:
            asked = await audit(stub, tmp_path, engine=engine, ledger=ledger)
            assert stub.count("GetObject") == 0
            hashed = await audit(stub, tmp_path, engine=engine, ledger=ledger, hash=True)
            again = await audit(stub, tmp_path, engine=engine, ledger=ledger, hash=True)
        states = {"algorithms": ["sha256"], "known": 0, "hashed_now": 0, "queued": 0, "unhashable": unhashable}
        states |= {"left_for_cost": {}, "routed": {"objects": 0, "bytes": 0}, "failed": {}}
        assert asked.summary["hashing"] == {**states, "pending": COUNT - unhashable}
        assert hashed.summary["hashing"] == {**states, "hashed_now": COUNT - unhashable, "pending": 0}
        assert again.summary["hashing"] == {**states, "known": COUNT - unhashable, "pending": 0}
        assert stub.count("GetObject") == COUNT - unhashable
        assert {line["hashed"] for line in again.objects if line["outcome"] == "audited"} == {True, False}

    async def test_under_faults_too(self, stub: StubServer, samples: StubBucket, tmp_path: Path, engine: str) -> None:
        stub.faults = [random_faults(0.3, seed=5, kinds=(INTERNAL_ERROR, CUT), operations={"GetObject"})]
        async with open_ledger(f"sqlite:{tmp_path / 'ledger.db'}") as ledger:
            await audit(stub, tmp_path, engine=engine, ledger=ledger, hash=True)
            stub.faults = []
            result = await audit(stub, tmp_path, engine=engine, ledger=ledger, hash=True)
        assert result.summary["hashing"]["pending"] == 0


class TestEnds:
    async def test_budget_ends_the_run_and_resuming_completes_it(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        whole = await audit(stub, tmp_path / "whole", engine=engine)
        out = tmp_path / "slices"
        stub.forget()
        result = await audit(stub, out, engine=engine, max_calls=90, part_lines=5)
        assert len(stub.requests) <= 90 + 1  # GetCallerIdentity answers for the account
        assert not result.summary["complete"]
        assert result.code == 4
        assert "--max-calls" in result.summary["resume"]["reason"]
        assert not (out / f"bucket={BUCKET}" / "latest.json").exists()
        slices = 1
        while not result.summary["complete"]:
            result = await audit(
                stub, out, engine=engine, max_calls=90, part_lines=5, resume=result.summary["resume"]["run"]
            )
            slices += 1
        assert slices > 2
        assert result.undated == whole.undated
        assert findings_of(result) == findings_of(whole)
        assert result.coverage == whole.coverage

    async def test_stop_ends_the_run_between_two_objects(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        stop = Stop()

        def stop_at(operation: str, key: str, nth: int) -> None:
            if key == "plain/0000080.txt":
                loop.call_soon_threadsafe(stop.set, "enough")

        loop = asyncio.get_running_loop()
        stub.faults = [stop_at]
        result = await audit(stub, tmp_path, engine=engine, stop=stop, concurrency=2)
        assert not result.summary["complete"]
        assert 0 < result.coverage["listed"] < COUNT
        assert result.summary["resume"] == {
            "run": result.summary["run"],
            "start_after": result.objects[-1]["key"],
            "reason": "enough",
        }

    async def test_latest_names_complete_whole_runs_by_target(
        self, stub: StubServer, samples: StubBucket, tmp_path: Path, engine: str
    ) -> None:
        async def run(target: Target, **settings: Any) -> str:
            summary = (await audit(stub, tmp_path, engine=engine, target=target, **settings)).summary
            return str(summary["run"])

        whole = await run(Target(BUCKET))
        prefix = await run(Target(BUCKET, "plain/"))
        versions = await run(Target(BUCKET, versions=True), versions=True)
        await run(Target(BUCKET, start_after="a"))
        await run(Target(BUCKET, "plain/", stop_at="plain/0000060.txt"))
        await run(Target(BUCKET), max_calls=60)
        latest = json.loads((tmp_path / f"bucket={BUCKET}" / "latest.json").read_text())
        runs = {"current": {"": whole, "plain/": prefix}, "versions": {"": versions}}
        assert latest == {"format": 1, "runs": runs}


async def test_calls_are_counted_as_the_server_counts_them(
    stub: StubServer, samples: StubBucket, tmp_path: Path, engine: str
) -> None:
    stub.faults = [random_faults(0.2, seed=1, kinds=(SLOW_DOWN,))]
    calls = (await audit(stub, tmp_path, engine=engine)).summary["calls"]
    assert calls["list"] == stub.count("ListObjectsV2")
    assert calls["acl"] == stub.count("GetObjectAcl")
    assert calls["head"] == stub.count("HeadObject")


async def test_owner_of_every_line_is_the_listings(
    stub: StubServer, samples: StubBucket, tmp_path: Path, engine: str
) -> None:
    result = await audit(stub, tmp_path, engine=engine)
    for number, key in enumerate(_put_order(samples)):
        expected = STRANGER if "foreign" in sample_kind(number) else OWNER
        assert result.line(key)["owner"] == expected
