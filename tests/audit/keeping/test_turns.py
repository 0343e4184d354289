"""FactTurns: no kept fact gets older than its limit, whatever the hour of the runs, and the runs are even."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditor.audit.keeping.turns import FactTurns

DAY: Final = 86_400.0
START: Final = 1_800_000_000.0


@given(
    limit=st.floats(60, 40 * DAY),
    every=st.floats(60, 9 * DAY),
    lateness=st.lists(st.floats(-0.04, 0.04), min_size=2, max_size=40),
    key=st.text(st.characters(), max_size=5),
    version=st.none() | st.text(max_size=3),
)
def test_no_kept_fact_is_older_than_its_limit_before_the_next_run(
    limit: float, every: float, lateness: list[float], key: str, version: str | None
) -> None:
    """lateness: by which share of the time between two runs each run is early or late."""
    read: float | None = None
    times = [START + (number + late) * every for number, late in enumerate(lateness)]
    for number, now in enumerate(times):
        if read is None or FactTurns(limit, every, now).due(key, version, read, now):
            read = now
        else:
            assert now - read <= limit
            following = times[number + 1] if number + 1 < len(times) else now + every
            assert following - read <= limit + max(0.0, following - now - every)


@given(
    limit=st.floats(60, 40 * DAY),
    gaps=st.lists(st.floats(60, 30 * DAY), min_size=1, max_size=20),
    key=st.text(max_size=5),
)
def test_runs_that_come_at_any_time_never_use_a_fact_beyond_its_limit(
    limit: float, gaps: list[float], key: str
) -> None:
    now = read = START
    for gap in gaps:
        now += gap
        if FactTurns(limit, DAY, now).due(key, None, read, now):
            read = now
        assert now - read <= limit


def nights(number: int, limit: float, *, late: float = 0.0) -> tuple[list[int], list[list[str]]]:
    """Return the number of objects that each night asks about, and the keys; all were read in the night before."""
    dice = Random(5)
    keys = [f"logs/2026/{each:06d}.json" for each in range(6_000)]
    read = dict.fromkeys(keys, START)
    asked: list[list[str]] = []
    for night in range(1, number + 1):
        now = START + night * DAY + dice.uniform(0, late)
        turns = FactTurns(limit, DAY, now)
        due = [key for key in keys if turns.due(key, None, read[key], now)]
        read |= dict.fromkeys(due, now)
        asked.append(due)
    return list(map(len, asked)), asked


@pytest.mark.parametrize(("days", "turns"), [(1, 1), (2, 1), (3, 2), (7, 6), (8, 7), (30, 29), (7.5, 7)])
def test_each_object_is_asked_once_in_a_round_of_nights(days: float, turns: int) -> None:
    assert FactTurns(days * DAY, DAY, START).number == turns
    numbers, asked = nights(3 * turns, days * DAY)
    assert set(Counter(key for night in asked for key in night).values()) == {3}
    assert all(6_000 / turns * 0.8 <= number <= 6_000 / turns * 1.2 for number in numbers)


def test_nights_of_which_each_begins_some_minutes_late_stay_even() -> None:
    numbers, _ = nights(30, 7 * DAY, late=2_000)
    assert all(800 <= number <= 1_200 for number in numbers)


def test_run_again_in_the_same_night_asks_nothing_twice() -> None:
    turns = FactTurns(7 * DAY, DAY, START)
    mine = [f"k{number}" for number in range(600) if turns.due(f"k{number}", None, START - DAY, START)]
    assert 60 <= len(mine) <= 140
    assert not any(turns.due(key, None, START, START + 60) for key in mine)


def test_night_that_was_left_out_is_made_up_for() -> None:
    limit, now = 3 * DAY, START + 2.5 * DAY
    assert all(FactTurns(limit, DAY, now).due(f"k{number}", None, START, now) for number in range(100))


@pytest.mark.parametrize("limit", [DAY, float("inf")])
def test_fact_of_the_future_is_due(limit: float) -> None:
    assert FactTurns(limit, DAY, START).due("k", None, START + 1, START)


def test_fact_without_a_limit_is_never_due() -> None:
    assert not any(
        FactTurns(float("inf"), DAY, START).due(f"k{n}", None, START - 9_999 * DAY, START) for n in range(100)
    )


def test_versions_of_a_key_have_turns_of_their_own() -> None:
    turns = FactTurns(30 * DAY, DAY, START)
    assert len({turns.turn_of("k", f"v{number}") for number in range(50)}) > 10
    assert turns.turn_of("\udcff", None) < turns.number
