"""What is due, over simulated nights: nobody is starved, nothing grows too old, and the nights are alike."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from auditor.verify.due import DAY, Due, Everything, OlderThan, Share, due_of
from tests.support.odd_keys import ODD_KEYS

DAYS = timedelta(days=1)
START = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
KEYS = [f"folder/{number}" for number in range(3000)] + list(ODD_KEYS.values())


def written(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def spread(counts: Counter[int], nights: int) -> float:
    """How far the fullest and the emptiest night are from the mean, as a share of it."""
    mean = sum(counts.values()) / nights
    return max(abs(counts[night] - mean) / mean for night in range(nights))


@pytest.mark.parametrize("percent", [100, 50, 33, 30, 10, 7.5])
def test_share_reads_each_object_once_in_its_period(percent: float) -> None:
    nights = math.ceil(100 / percent)
    due = Share(percent)
    read = Counter(
        (key, version)
        for night in range(nights)
        for key in KEYS
        for version in (None, "v1")
        if due.due(key, version, None, START + night * DAYS)
    )
    assert set(read.values()) == {1}
    assert len(read) == 2 * len(KEYS)


def test_shares_are_alike_within_a_fifth() -> None:
    due = Share(10)
    counts = Counter(night for night in range(10) for key in KEYS if due.due(key, None, None, START + night * DAYS))
    assert spread(counts, 10) < 0.2


def test_weekly_runs_starve_nobody() -> None:
    """With a period of seven runs, a week apart, counting days would read the same slice each time."""
    due = Share(100 / 7, every=7 * DAY)
    read = {key for week in range(8) for key in KEYS if due.due(key, None, None, START + 7 * week * DAYS)}
    assert read == set(KEYS)


@pytest.mark.parametrize(("limit", "every"), [(12, 1), (28, 7), (10, 3), (1, 1)])
def test_nothing_grows_older_than_the_limit_and_no_night_has_it_all(limit: int, every: int) -> None:
    due = OlderThan(limit * DAY, every * DAY)
    checked = dict.fromkeys(KEYS, START - DAYS / 2)  # all were recorded in one night
    counts: Counter[int] = Counter()
    runs = limit // every
    for run in range(3 * runs):
        night = START + run * every * DAYS
        for key in KEYS:
            if due.due(key, None, written(checked[key]), night):
                checked[key] = night
                counts[run] += 1
            assert night - checked[key] <= limit * DAYS
    second = Counter({run - runs: counts[run] for run in range(runs, 2 * runs)})
    assert sum(second.values()) == len(KEYS)
    assert spread(second, runs) < 0.2


def test_missed_night_is_made_up_for() -> None:
    """The function did not run in an object's night: its age makes it due in the next."""
    due = OlderThan(10 * DAY)
    (slot,) = (night for night in range(10) if due.due("key", None, written(START), START + night * DAYS))
    checked = written(START + (slot - 10) * DAYS)
    assert due.due("key", None, checked, START + (slot + 1) * DAYS)
    assert not due.due("key", None, written(START + slot * DAYS), START + (slot + 1) * DAYS)


def test_fresh_object_waits_for_its_night() -> None:
    due = OlderThan(90 * DAY)
    nights = [night for night in range(90) if due.due("key", None, written(START), START + night * DAYS)]
    assert len(nights) == 1


def test_time_that_nobody_can_read_is_no_look_at_it() -> None:
    night = (
        START + next(n for n in range(90) if not OlderThan(90 * DAY).due("key", None, None, START + n * DAYS)) * DAYS
    )
    assert OlderThan(90 * DAY).due("key", None, "last Tuesday", night)


def test_settings_choose() -> None:
    assert due_of(None, None, DAY) == Everything()
    assert due_of(5 * DAY, None, DAY) == OlderThan(5 * DAY, DAY)
    assert due_of(None, 5.0, 7 * DAY) == Share(5.0, 7 * DAY)
    assert Everything().due("key", None, written(START), START)


@pytest.mark.parametrize(
    ("due", "words"),
    [
        (OlderThan(90 * DAY), "not looked at for 90 days, with a run every day"),
        (OlderThan(DAY, DAY / 2), "not looked at for 1 day, with a run every 0.5 days"),
        (Share(5, 7 * DAY), "5 percent, with a run every 7 days"),
    ],
)
def test_summary_says_what_is_due(due: Due, words: str) -> None:
    assert due.words == words


def test_slots_never_change() -> None:
    """Another release or process must go on with the same slices."""
    for key in ("a", "b", "key with spaces", "caf\u00e9"):
        slot = int(hashlib.sha256(f"{key}\0v1".encode()).hexdigest()[:16], 16) % 10
        nights = [datetime.fromtimestamp(night * DAY, UTC) for night in range(10)]
        assert [Share(10).due(key, "v1", None, night) for night in nights].index(True) == slot
