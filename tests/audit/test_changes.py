"""What a run says of the changes since the last complete run of its target, however it was interrupted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import auditor
from auditor.model.object import Grant
from tests.support.audit_runs import Result, audit
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import OWNER, STRANGER, StubBucket

OWN: Final = Grant(OWNER, "FULL_CONTROL")
PUBLIC: Final[Mapping[str, Any]] = {"acl": "public-read"}
SHARED: Final[Mapping[str, Any]] = {"grants": (OWN, Grant(STRANGER, "READ"))}
DARK: Final[Mapping[str, Any]] = {**PUBLIC, "deny": {"acl"}}

PLANTED: Final[Mapping[str, tuple[int, Mapping[str, Any] | None, Mapping[str, Any] | None]]] = {
    "new": (15, {}, PUBLIC),
    "uploaded": (10, None, PUBLIC),
    "worsened": (15, SHARED, PUBLIC),
    "improved": (15, PUBLIC, SHARED),
    "resolved": (15, PUBLIC, {}),
    "gone": (10, PUBLIC, None),
    "unread": (10, PUBLIC, DARK),
    "decided": (10, DARK, PUBLIC),
}
"""By prefix: the number of objects that change between the two nights, and their fields before and after."""
SAME: Final = {"quiet": (60, {}), "open": (20, PUBLIC), "dark": (5, DARK), "left": (5, SHARED)}
CLASSES: Final = {name: "new" if name == "uploaded" else name for name in PLANTED}
VERDICTS: Final = {
    "exposed": {"new": 25, "worsened": 15, "improved": 15, "resolved": 15, "gone": 10, "unread": 10, "decided": 10}
}


def night(number: int) -> StubBucket:
    """The bucket of the first night (0) or of the second one (1)."""
    bucket = StubBucket(name=BUCKET)
    for prefix, (count, *nights) in PLANTED.items():
        fields = nights[number]
        for one in range(count):
            if fields is not None:
                bucket.put(f"{prefix}/{one:03}", b"x", **fields)
    for prefix, (count, fields) in SAME.items():
        for one in range(count):
            bucket.put(f"{prefix}/{one:03}", b"x", **fields)
    return bucket


def keys(prefixes: Mapping[str, str]) -> set[tuple[str, str]]:
    return {(kind, f"{prefix}/{one:03}") for prefix, kind in prefixes.items() for one in range(PLANTED[prefix][0])}


async def two_nights(stub: StubServer, out: Path, **settings: Any) -> tuple[Result, Result]:
    stub.world.buckets[BUCKET] = night(0)
    first = await audit(stub, out, **settings)
    stub.world.buckets[BUCKET] = night(1)
    return first, await audit(stub, out, **settings)


async def test_hundred_planted_changes_are_named_each_in_its_class(stub: StubServer, tmp_path: Path) -> None:
    assert sum(count for count, *_ in PLANTED.values()) == 100
    first, second = await two_nights(stub, tmp_path, engine="direct")
    found = list(auditor.diff(auditor.open_run(first.folder), auditor.open_run(second.folder)))
    verdicts = [one for one in found if one.finding is None]
    assert len(verdicts) == 100
    assert {(one.kind.value, one.key) for one in verdicts} == keys(CLASSES)

    none = first.summary["changes"]
    assert (none["against"], none["classes"]) == (None, {})
    assert none["why_not"] == "there is no earlier complete run of the target"
    changes = second.summary["changes"]
    assert (changes["against"], changes["why_not"]) == (first.summary["run"], None)
    assert changes["verdicts"] == VERDICTS
    counted: dict[str, int] = {}
    for one in found:
        counted[one.kind.value] = counted.get(one.kind.value, 0) + 1
    assert changes["classes"] == counted


async def test_resumed_run_counts_the_same_changes(stub: StubServer, tmp_path: Path) -> None:
    out, calls = tmp_path / "runs", 90
    first, _ = await two_nights(stub, tmp_path / "whole", engine="direct")
    stub.world.buckets[BUCKET] = night(0)
    first = await audit(stub, out, engine="direct")
    stub.world.buckets[BUCKET] = night(1)
    result = await audit(stub, out, engine="direct", max_calls=calls, part_lines=7)
    slices = 1
    while not result.summary["complete"]:
        assert result.summary["changes"]["why_not"] is not None
        assert sum(sum(kinds.values()) for kinds in result.summary["changes"]["verdicts"].values()) > 0
        run = result.summary["resume"]["run"]
        result = await audit(stub, out, engine="direct", max_calls=calls, part_lines=7, resume=run)
        slices += 1
    assert slices > 2
    assert result.summary["changes"]["against"] == first.summary["run"]
    assert result.summary["changes"]["verdicts"] == VERDICTS


async def test_damaged_last_run_ends_no_run_and_is_named(stub: StubServer, tmp_path: Path) -> None:
    stub.world.buckets[BUCKET] = night(0)
    first = await audit(stub, tmp_path, engine="direct")
    for part in (first.folder / "objects").iterdir():
        part.write_bytes(b"damaged")
    second = await audit(stub, tmp_path, engine="direct")
    changes = second.summary["changes"]
    assert changes["against"] is None
    assert changes["why_not"] == f"the last run, {first.summary['run']}, could not be read"
    assert changes["classes"] == {}


async def test_policy_that_opens_objects_is_said_once(stub: StubServer, tmp_path: Path) -> None:
    stub.world.buckets[BUCKET] = night(0)
    await audit(stub, tmp_path, engine="direct")
    statement = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject"}
    statement["Resource"] = f"arn:aws:s3:::{BUCKET}/quiet/*"
    stub.world.buckets[BUCKET].policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    second = await audit(stub, tmp_path, engine="direct")
    assert second.summary["changes"]["causes"] == [{"change": "the bucket policy changed", "objects": 60}]
    assert second.summary["changes"]["verdicts"]["exposed"] == {"new": 60}
    third = await audit(stub, tmp_path, engine="direct", ignore=("O02",))
    assert "resolved" not in third.summary["changes"]["findings"]["high"]
    assert third.summary["changes"]["findings"]["high"]["unread"] > 0


async def test_versions_of_a_key_are_compared_each_with_itself(stub: StubServer, tmp_path: Path) -> None:
    bucket = stub.world.buckets[BUCKET] = StubBucket(name=BUCKET, versioning="Enabled")
    for _ in range(3):
        for one in range(20):
            bucket.put(f"v/{one:03}", b"x", acl="public-read")
    settings: dict[str, Any] = {"engine": "direct", "versions": True}
    await audit(stub, tmp_path, **settings)
    for one in range(0, 20, 2):
        bucket.put(f"v/{one:03}", b"y", acl="public-read")
    result = await audit(stub, tmp_path, max_calls=70, part_lines=5, **settings)
    while not result.summary["complete"]:
        run = result.summary["resume"]["run"]
        result = await audit(stub, tmp_path, max_calls=70, part_lines=5, resume=run, **settings)
    assert result.summary["changes"]["verdicts"] == {"exposed": {"new": 10}}
