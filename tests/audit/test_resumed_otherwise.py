"""A run that goes on under other circumstances: what was not judged before the stop is not clean after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auditor.errors import UsageError
from tests.support.audit_runs import Result, audit
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


async def test_rule_that_is_undecided_after_the_stop_is_so_for_the_run(
    stub: StubServer, filled: StubBucket, tmp_path: Path
) -> None:
    first = await begin(stub, tmp_path)
    assert undecided(first) == set()
    filled.odd["GetBucketAcl"] = Odd.DENIED
    whole = await audit(stub, tmp_path, resume=first.summary["run"])
    assert undecided(whole) == {"B03", "B05"}


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


async def test_an_entry_of_trusted_that_trusted_something_before_the_stop_is_not_idle(
    stub: StubServer, filled: StubBucket, tmp_path: Path
) -> None:
    for number in range(20, 40):
        filled.put(f"k{number:03}", b"x")
    settings: dict[str, Any] = {"trusted": frozenset({STRANGER, "999988887777"})}
    first = await begin(stub, tmp_path, **settings)
    assert first.summary["trust_unused"] == ["999988887777"]
    whole = await audit(stub, tmp_path, resume=first.summary["run"], **settings)
    assert whole.summary["complete"]
    assert whole.summary["trust_unused"] == ["999988887777"]
