"""A run that goes on, also under other circumstances: what was not judged before the stop is not clean after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auditor.errors import RunChanged, UsageError
from auditor.model.bucket import PublicAccessBlock
from tests.audit.divided.test_combine import groups
from tests.support.audit_runs import Result, audit
from tests.support.divided_runs import Divided
from tests.support.servers.clients import BUCKET
from tests.support.servers.stub import StubServer
from tests.support.servers.world import STRANGER, Odd, StubBucket

BUDGET = 60
"""Enough for the bucket and some of its objects."""


@pytest.fixture
def filled(stub: StubServer, bucket: StubBucket) -> StubBucket:
    for number in range(40):
        bucket.put(f"k{number:03}", b"x", owner=STRANGER if number % 5 == 0 else bucket.owner)
    return bucket


async def begin(stub: StubServer, out: Path, **settings: Any) -> Result:
    first = await audit(stub, out, max_calls=BUDGET, **settings)
    assert not first.summary["complete"]
    assert 0 < first.coverage["listed"] < 40
    return first


def undecided(result: Result) -> set[str]:
    return {item["rule"] for item in result.summary["rules_undecided"]}


async def test_rule_that_was_undecided_before_the_stop_stays_so(
    stub: StubServer, filled: StubBucket, tmp_path: Path
) -> None:
    filled.odd["GetBucketAcl"] = Odd.DENIED
    first = await begin(stub, tmp_path)
    assert undecided(first) == {"B03", "B05"}
    filled.odd.clear()
    whole = await audit(stub, tmp_path, resume=first.summary["run"])
    assert whole.summary["complete"]
    assert undecided(whole) == {"B03", "B05"}
    assert whole.code == 4


@pytest.mark.parametrize("ranges", [1, 4])
async def test_a_run_whose_bucket_was_opened_meanwhile_does_not_call_its_objects_masked(
    stub: StubServer, filled: StubBucket, tmp_path: Path, ranges: int
) -> None:
    hidden = filled.public_access_block = PublicAccessBlock(ignore_public_acls=True)
    divided = Divided(stub, tmp_path, only=("O02", "E01"))
    if ranges == 1:
        divided.run_id = (await begin(stub, tmp_path, only=("O02", "E01"))).summary["run"]
    else:
        await divided.ranges([one.id for one in (await divided.begin(ranges)).ranges[:-1]])
    filled.public_access_block = None
    with pytest.raises(RunChanged, match=r"\(public_access_block\).*start a new run"):
        await divided.begin(ranges, divided.run_id)
    filled.public_access_block = hidden
    filled.odd["GetBucketOwnershipControls"] = Odd.DENIED
    with pytest.raises(RunChanged, match=r"\(ownership\)"):
        await divided.begin(ranges, divided.run_id)
    filled.odd.clear()
    await divided.begin(ranges, divided.run_id)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"trusted": frozenset({STRANGER})}, {}),
        ({"rules": {"M01": {"required": ["a"]}}}, {"rules": {"M01": {"required": ["b"]}}}),
        ({"only": ("O01", "E01")}, {}),
    ],
)
async def test_other_questions_are_another_run(
    stub: StubServer, filled: StubBucket, tmp_path: Path, before: dict[str, Any], after: dict[str, Any]
) -> None:
    first = await begin(stub, tmp_path, **before)
    with pytest.raises(UsageError, match="start a new run"):
        await audit(stub, tmp_path, resume=first.summary["run"], **after)
    assert (await audit(stub, tmp_path, resume=first.summary["run"], **before)).summary["complete"]


@pytest.mark.parametrize("own_first", [False, True])
async def test_an_entry_of_trusted_that_trusted_something_on_either_side_of_the_stop_is_not_idle(
    stub: StubServer, filled: StubBucket, tmp_path: Path, own_first: bool
) -> None:
    for number in range(0 if own_first else 20, 40):
        filled.put(f"k{number:03}", b"x", owner=STRANGER if own_first and number == 39 else filled.owner)
    settings: dict[str, Any] = {"trusted": frozenset({STRANGER, "999988887777"})}
    first = await begin(stub, tmp_path, **settings)
    assert first.summary["trust_unused"] == sorted(settings["trusted"] if own_first else ["999988887777"])
    whole = await audit(stub, tmp_path, resume=first.summary["run"], **settings)
    assert whole.summary["complete"]
    assert whole.summary["trust_unused"] == ["999988887777"]


async def test_a_resumed_run_has_the_same_rollups(stub: StubServer, bucket: StubBucket, tmp_path: Path) -> None:
    bucket.versioning = "Enabled"
    for number in range(30):
        denied = {"acl"} if number % 7 == 0 else set()
        for acl in ("public-read", "authenticated-read" if number % 3 else "private"):
            stub.put(BUCKET, f"a/{number % 5}/{number:02}", b"data", acl=acl, deny=denied)
    whole = groups(await audit(stub, tmp_path / "whole", versions=True))
    assert {group["kind"] for group in whole["groups"]} == {"finding", "verdict", "undecided"}
    assert [step["decides"] for step in whole["first"]] == [0, whole["totals"]["undecided"]]
    settings: dict[str, Any] = {"versions": True, "max_calls": 60, "part_lines": 3}
    result = await audit(stub, tmp_path / "cut", **settings)
    hops = 1
    while not result.summary["complete"]:
        assert groups(result)["complete"] is False
        result = await audit(stub, tmp_path / "cut", **settings, resume=result.summary["run"])
        hops += 1
    assert hops > 2
    assert groups(result) == whole
