"""run.json has the target, its ranges and what judges it; ranges that are not the whole target are damage."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from auditor.errors import RunDamaged, UsageError
from auditor.model.object import Skipped, Unread
from auditor.model.target import Target
from auditor.runs.key_file import with_policies
from auditor.runs.run_files import PlannedRange, RunPlan, parsed
from tests.support.samples.bucket import facts
from tests.support.samples.reports import RUN, sample_file

WHOLE = Target("audited", "photos/", start_after="b", stop_at="y")
RANGES = (
    PlannedRange("00000", "b", "m", 10),
    PlannedRange("00001", "m", "p", 2),
    PlannedRange("00002", "p", "y"),
)
PLAN = sample_file(target=WHOLE, ranges=RANGES)


def read(plan: RunPlan) -> RunPlan:
    return parsed(plan.to_json(), "run.json", RunPlan, RUN)


def test_it_reads_back_with_a_range_for_each_key() -> None:
    assert read(PLAN) == PLAN
    assert read(sample_file(target=WHOLE)).divided is False
    assert (PLAN.divided, PLAN.keys, replace(PLAN, ranges=RANGES[:2]).keys) == (True, None, 12)
    limits = [(one.start_after, one.stop_at, one.prefix) for one in map(PLAN.target_of, PLAN.ranges)]
    assert limits == [("b", "m", "photos/"), ("m", "p", "photos/"), ("p", "y", "photos/")]
    assert PLAN.range("00001") is PLAN.ranges[1]
    with pytest.raises(UsageError, match=f"^run {RUN} has no range '00003': give 00000 to 00002$"):
        PLAN.range("00003")


def test_a_key_in_no_range_or_in_two_is_damage() -> None:
    """A run whose ranges left keys out would be complete without them."""
    changes: tuple[tuple[int, dict[str, Any], str], ...] = (
        (0, {"start_after": None}, "range 00000 does not begin at the end of the target's first key"),
        (1, {"start_after": "n"}, "range 00001 does not begin at the end of range 00000"),
        (1, {"id": "00002"}, "range 00002 is in the place of range 00001"),
        (1, {"stop_at": "m"}, "range 00001 ends before it begins"),
        (2, {"stop_at": None}, "the last range does not end at the target's end"),
    )
    wrong = [((*RANGES[:at], replace(RANGES[at], **change), *RANGES[at + 1 :]), words) for at, change, words in changes]
    wrong += [((), "the last range does not end"), (RANGES[:1], "range 00000 is not the target")]
    wrong += [((PlannedRange("00001", "b", "y"),), "range 00001 is not the target")]
    for ranges, words in wrong:
        with pytest.raises(RunDamaged, match=rf"is damaged \(ranges is not whole: {words}"):
            read(replace(PLAN, ranges=ranges))
    backwards = Target("audited", start_after="y", stop_at="b")
    assert read(sample_file(target=backwards)).target == backwards, "no key between the limits is no damage"


def test_policies_of_keys_are_those_of_the_run_and_of_its_ranges() -> None:
    denied = Unread("GetKeyPolicy", "AccessDenied")
    plan = sample_file(facts=facts(key_policies={"a": "{}", "b": denied}))
    found = with_policies(plan, {"a": denied, "b": "[]", "c": denied}).facts.key_policies
    assert found == {"a": "{}", "b": "[]", "c": denied}
    skipped = sample_file(facts=facts(key_policies=Skipped("no")))
    assert with_policies(skipped, {"c": "{}"}).facts.key_policies == {"c": "{}"}
