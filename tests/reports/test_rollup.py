"""Roll-ups add up to the tally whatever the keys are, stay few and small, and go on from a checkpoint unchanged."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.model.access import Audience, AudienceKind, ObjectAccess, Verdict
from auditor.model.finding import Judgement, Severity
from auditor.model.json_codec import JsonError
from auditor.model.rollup import RollUps
from auditor.model.run_lines import Recorded, Standing
from auditor.reports.prefix_counts import DEEPEST, SAMPLES, prefix_above, prefix_of
from auditor.reports.rollup import GROUPS, OTHERS, PREFIXES, SUBJECTS, RollUpBuilder
from auditor.runs.tally import Tally
from tests.support.samples.reports import RUN, denied, finding, gone, judged, rollups_of, target

BEGAN = "2026-01-02T03:04:05Z"


def recorded(judgement: Judgement) -> Recorded:
    """The results of an object that no earlier run knows."""
    since = Standing(BEGAN, None)
    is_open = judgement.access is not None and judgement.access.verdict is not Verdict.PRIVATE
    return Recorded(judgement, since if is_open else None, (since,) * len(judgement.findings))


def note(builder: RollUpBuilder, recorded: Recorded) -> None:
    builder.add(recorded)
    builder.upto(recorded.judgement.evidence.ref.key)


def finished(builder: RollUpBuilder) -> RollUps:
    return builder.rollups(RUN, target(), True)


def check_sums(rollups: RollUps, tally: Tally) -> None:
    totals = rollups.totals
    assert totals.rules == dict(sorted(tally.rules.items()))
    assert totals.findings == tally.findings
    assert {**totals.verdicts, "private": tally.verdicts["private"]} == tally.verdicts
    assert totals.undecided == tally.coverage["undecided"]
    assert len(rollups.groups) <= GROUPS
    assert len({group.id for group in rollups.groups}) == len(rollups.groups)


KEYS = st.text("ab/\u00e9\n", min_size=1, max_size=12)
JUDGED = st.sampled_from(Verdict).flatmap(
    lambda verdict: st.builds(
        lambda key, rules: judged(key, *(finding(key, rule) for rule in rules), verdict=verdict),
        KEYS,
        st.lists(st.sampled_from(["O01", "O02", "E01"]), max_size=3, unique=True),
    )
)
OBJECTS = st.lists(st.one_of(JUDGED, KEYS.map(denied), KEYS.map(gone)), max_size=60).map(
    lambda found: sorted(found, key=lambda one: one.evidence.ref.key.encode())
)


@given(OBJECTS, st.integers(0, 60))
def test_the_sums_are_the_tallys_and_a_checkpoint_changes_nothing(found: list[Judgement], cut: int) -> None:
    tally, whole, first = Tally(), RollUpBuilder(), RollUpBuilder()
    for builder in (whole, first):
        builder.add_bucket([finding(None, "B01", Severity.CRITICAL)], [Standing(BEGAN, None)])
        builder.upto(None)
    tally.add_findings([finding(None, "B01", Severity.CRITICAL)])
    for number, judgement in enumerate(found):
        if number == cut:
            first = RollUpBuilder.restored(json.loads(json.dumps(first.saved())))
        tally.add(judgement)
        note(whole, recorded(judgement))
        note(first, recorded(judgement))
    check_sums(finished(whole), tally)
    assert finished(first).to_json() == finished(whole).to_json()


def test_prefixes_are_cut_where_most_objects_lie() -> None:
    keys = [f"logs/2026/{number:03}" for number in range(300)] + [f"public/{number % 7}/x" for number in range(2)]
    rollups = rollups_of(*[judged(key, verdict=Verdict.EXPOSED) for key in sorted(keys)])
    assert [(group.prefix, group.count, group.rest) for group in rollups.groups] == [
        ("logs/2026/", 300, False),
        ("", 2, True),
    ]
    assert [sample.key for sample in rollups.groups[0].samples] == [f"logs/2026/{n:03}" for n in range(SAMPLES)]
    assert rollups.groups[0].bytes == 900
    assert rollups.groups[0].since == BEGAN


def test_the_prefix_of_a_key_and_the_one_above_it() -> None:
    keys = {"a": "", "/a": "/", "a/b/c": "a/b/", "a//": "a//", "x/" * 20: "x/" * DEEPEST}
    keys |= {"y" * 400 + "/z": "", "a/" + "y" * 400 + "/z": "a/"}
    assert {key: prefix_of(key) for key in keys} == keys
    assert [prefix_above(one) for one in ("a/b/", "a/", "a//", "/")] == ["a/", "", "a/", ""]


def damaged(value: Any) -> dict[str, Any]:
    count: dict[str, Any] = {
        "kind": "finding",
        "rule": "O02",
        "verdict": None,
        "severity": "high",
        "audience": None,
        "prefix": "",
    }
    count |= {"count": 1, "bytes": 1, "new": None, "excepted": 0, "since": None, "samples": []}
    return {"counts": [count | value]}


def test_damaged_counts_are_refused() -> None:
    assert RollUpBuilder.restored(damaged({})).saved() == damaged({})
    for value in ({"counts": 3}, {}, damaged({"count": -1}), damaged({"kind": "x"}), damaged({"samples": [1]})):
        with pytest.raises(JsonError):
            RollUpBuilder.restored(value)
    with pytest.raises(JsonError, match="twice"):
        RollUpBuilder.restored({"counts": damaged({})["counts"] * 2})


SHAPES: dict[str, Callable[[int, int], str]] = {
    "flat": lambda number, of: f"{number:08}",
    "a prefix for each key": lambda number, of: f"{number:08}/x",
    "deep": lambda number, of: "/".join(f"{number:08}"),
    "very deep": lambda number, of: f"{number:08}/" + "d/" * 500,
    "a tenth as many prefixes": lambda number, of: f"logs/{number // 10:07}/{number % 10}",
    "one large prefix": lambda number, of: f"{number:08}/x" if number < of // 10 else f"z/{number:08}",
}


def planted(shape: str, number: int) -> Iterator[Judgement]:
    for index in range(number):
        key = SHAPES[shape](index, number)
        yield judged(key, finding(key), verdict=Verdict.EXPOSED) if index % 100 else denied(key)


def check_shape(shape: str, number: int) -> list[int]:
    """The peaks of memory after a fifth of the objects and after all, if memory is traced."""
    tally, builder, peaks = Tally(), RollUpBuilder(), []
    for at, judgement in enumerate(planted(shape, number), 1):
        tally.add(judgement)
        note(builder, recorded(judgement))
        if at in (number // 5, number):
            peaks.append(tracemalloc.get_traced_memory()[1])
    check_sums(finished(builder), tally)
    saved = builder.saved()
    assert len(saved["counts"]) <= PREFIXES
    assert finished(RollUpBuilder.restored(json.loads(json.dumps(saved)))) == finished(builder)
    if shape == "one large prefix":
        assert any(group.prefix == "z/" and group.count > number * 0.8 for group in finished(builder).groups)
    return peaks


@pytest.mark.parametrize("shape", SHAPES)
def test_hostile_prefixes_add_up_and_stay_few(shape: str) -> None:
    check_shape(shape, PREFIXES + 100)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["a prefix for each key", "very deep"])
def test_memory_stays_flat(shape: str) -> None:
    tracemalloc.start()
    try:
        first, last = check_shape(shape, 20_000)
    finally:
        tracemalloc.stop()
    assert last < first * 1.5 + 1_000_000


def test_many_audiences_have_a_bound() -> None:
    found = []
    for number in range(SUBJECTS + 50):
        access = ObjectAccess(Verdict.SHARED, (Audience(AudienceKind.ACCOUNT, f"{number:012}"),))
        key = f"{number:03}/x"
        found.append(Judgement(judged(key).evidence, access, (finding(key),), ()))
    tally = Tally()
    for judgement in found:
        tally.add(judgement)
    rollups = rollups_of(*found)
    check_sums(rollups, tally)
    assert sum(group.count for group in rollups.groups if group.audience == OTHERS) == 2 * (SUBJECTS + 50) - SUBJECTS
