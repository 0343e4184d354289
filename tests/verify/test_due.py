"""What is due, over simulated nights: nobody is starved, nothing grows too old, and the nights are alike."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from auditor.verify.due import DAY, Schedule, due_of
from tests.support.odd_keys import ODD_KEYS

DAYS = timedelta(days=1)
START = datetime(2026, 3, 1, 2, 0, tzinfo=UTC)
KEYS = [f"folder/{number}" for number in range(1000)] + list(ODD_KEYS.values())
NIGHTS = 130


def written(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def spread(counts: Counter[int], nights: int) -> float:
    """How far the fullest and the emptiest night are from the mean, as a share of it."""
    mean = sum(counts.values()) / nights
    return max(abs(counts[night] - mean) / mean for night in range(nights))


def starts() -> dict[str, list[datetime]]:
    """The starts of the runs of several schedulers."""
    missed, late = random.Random(14), random.Random(15)
    nightly = [START + night * DAYS for night in range(NIGHTS)]
    berlin = datetime(2026, 3, 1, 1, 0, tzinfo=ZoneInfo("Europe/Berlin"))  # on both sides of UTC's midnight in turn
    return {
        "nightly": nightly,
        "weekly": nightly[::7],  # without --every 7d
        "a tenth missed": [start for night, start in enumerate(nightly) if night % 10],  # the same turns each time
        "missed by chance": [start for start in nightly if missed.random() >= 0.1],  # two in a row now and then
        "summer time": [(berlin + night * DAYS).astimezone(UTC) for night in range(NIGHTS)],
        "up to six hours late": [start + timedelta(hours=6 * late.random()) for start in nightly],
    }


STARTS = starts()


@dataclass
class Nights:
    """The reads of a simulation. oldest: largest age of an object at its read, or at the end."""

    oldest: timedelta
    read: Counter[int]
    late: float


def of_each_turn(schedule: Schedule) -> list[str]:
    """The first and the last key of each turn, or one of the two in turn where there are many."""
    ends: dict[int, list[str]] = {}
    for key in KEYS:
        ends.setdefault(turn_of(key, schedule), [key])[1:] = [key]
    assert len(ends) == max(1, schedule.runs)
    some = [found if len(ends) < 30 else [found[turn % 2]] for turn, found in ends.items()]
    return sorted((key for found in some for key in found), key=KEYS.index)


def turn_of(key: str, schedule: Schedule) -> int:
    return int(hashlib.sha256(f"{key}\0".encode()).hexdigest()[:16], 16) % max(1, schedule.runs)


def simulate(schedule: Schedule, runs: list[datetime], *, hours: float = 0.0, objects: int | None = None) -> Nights:
    """Read the due objects in each run, in key order, over `hours`. All were recorded half a day before the first.

    objects: None: some of each turn.
    """
    keys = of_each_turn(schedule) if objects is None else KEYS[:objects]
    checked = dict.fromkeys(keys, (runs[0] - DAYS / 2).isoformat())
    found = Nights(timedelta(), Counter(), 0.0)
    for number, run in enumerate(runs):
        for place, key in enumerate(keys):
            moment = run + timedelta(hours=hours * place / len(keys))
            if schedule.due(key, None, checked[key], run):
                found.oldest = max(found.oldest, moment - datetime.fromisoformat(checked[key]))
                found.late = max(found.late, schedule.late(checked[key], moment))
                checked[key] = moment.isoformat()
                found.read[number] += 1
    found.oldest = max(found.oldest, runs[-1] - datetime.fromisoformat(min(checked.values())))
    return found


def longest_gap(runs: list[datetime]) -> timedelta:
    return max(later - earlier for earlier, later in pairwise(runs))


@pytest.mark.parametrize("nights", STARTS)
def test_share_reads_every_object_within_its_period_and_the_longest_gap_between_runs(nights: str) -> None:
    runs = STARTS[nights]
    for hours in (0.0, 20.0):
        found = simulate(due_of(None, 7.5, DAY), runs, hours=hours)
        irregular = longest_gap(runs) + timedelta(hours=hours)
        assert found.oldest <= 14 * DAYS + irregular
        assert found.late <= (irregular - DAYS).total_seconds()


@pytest.mark.parametrize("limit", [10, 2, 40])
@pytest.mark.parametrize("nights", STARTS)
def test_no_object_grows_older_than_the_limit_or_the_schedule_says_by_how_much(nights: str, limit: int) -> None:
    runs = STARTS[nights]
    schedule = due_of(limit * DAY, None, DAY)
    for hours in (0.0, 20.0):
        found = simulate(schedule, runs, hours=hours)
        excess = (found.oldest - limit * DAYS).total_seconds()
        assert found.late == pytest.approx(max(0.0, excess))
        spare = limit * DAY - schedule.runs * DAY
        assert found.late <= max(0.0, longest_gap(runs).total_seconds() + hours * 3600 - spare)
        if limit > 2 and nights != "weekly" and (limit > 10 or nights != "missed by chance"):
            assert found.late == 0


def test_no_night_has_them_all_though_all_were_recorded_in_one() -> None:
    for limit, every in ((13, 1), (28, 7), (10, 3)):
        runs = [START + every * night * DAYS for night in range(3 * limit // every)]
        schedule = due_of(limit * DAY, None, every * DAY)
        found = simulate(schedule, runs, objects=len(KEYS))
        period = schedule.runs
        second = Counter({run - period: found.read[run] for run in range(period, 2 * period)})
        assert sum(second.values()) == len(KEYS)
        assert spread(second, period) < 0.35, (limit, every)


def test_share_reads_each_object_once_in_its_period() -> None:
    for percent, nights in ((100, 1), (50, 2), (30, 4), (7.5, 14)):
        found = simulate(
            due_of(None, percent, DAY), [START + night * DAYS for night in range(2 * nights)], objects=1000
        )
        assert sum(found.read[night] for night in range(nights, 2 * nights)) == 1000, percent
        assert spread(Counter({night: found.read[nights + night] for night in range(nights)}), nights) < 0.4, percent


def test_time_that_is_none_is_no_look_at_the_object() -> None:
    schedule = due_of(90 * DAY, None, DAY)
    for checked in (None, "last Tuesday", "", "2999-01-01T00:00:00Z"):
        assert all(schedule.due("key", None, checked, START + night * DAYS) for night in range(90)), checked
        assert schedule.late(checked, START) == due_of(0.0, None, DAY).late(checked, START) == 0


def test_time_a_week_ahead_is_a_look_and_a_later_one_is_not() -> None:
    schedule = due_of(90 * DAY, None, DAY)
    for ahead, due in ((timedelta(days=7), False), (timedelta(days=7, seconds=1), True)):
        assert schedule.due("key", None, written(START + ahead), START) is due


def test_time_without_a_zone_is_utc() -> None:
    assert due_of(9 * DAY, None, DAY).late("2026-03-01T00:00:00", START + 9 * DAYS) == 2 * 3600


def test_settings_choose() -> None:
    everything = due_of(None, None, DAY)
    assert (everything.words, everything.runs) == ("everything", 0)
    assert everything.due("key", None, written(START + DAYS), START)
    assert everything.late("2000-01-01T00:00:00Z", START) == 0
    for given, words, runs, every, limit in (
        ((5 * DAY, None, DAY), "not read for 5 days, with a run every day", 4, DAY, 5 * DAY),
        ((90 * DAY, None, DAY / 2), "not read for 90 days, with a run every 0.5 days", 177, DAY / 2, 90 * DAY),
        ((DAY, None, DAY / 2), "not read for 1 day, with a run every 0.5 days", 1, DAY / 2, DAY),
        ((None, 5.0, 7 * DAY), "5 percent, with a run every 7 days", 20, 7 * DAY, 147 * DAY),
        ((None, 100.0, DAY), "100 percent, with a run every day", 0, DAY, 2 * DAY),
    ):
        made = due_of(*given)
        assert (made.words, made.runs, made.every, made.limit) == (words, runs, every, limit)
    assert [due_of(share * DAY, None, DAY).runs for share in (0.5, 1, 2, 15, 20)] == [0, 0, 1, 12, 17]


def test_turns_never_change() -> None:
    """Another release or process must go on with the same turns."""
    for key, version in (("a", "v1"), ("b", "v1"), ("key with spaces", "v1"), ("caf\u00e9", None)):
        turn = int(hashlib.sha256(f"{key}\0{version or ''}".encode()).hexdigest()[:16], 16) % 10 * DAY
        begin = datetime.fromtimestamp(0, UTC) + 500 * DAYS
        before, after = (begin + timedelta(seconds=turn + more) for more in (-1, 1))
        assert not due_of(None, 10, DAY).due(key, version, written(begin + timedelta(seconds=1)), before)
        assert due_of(None, 10, DAY).due(key, version, written(before), after)
        assert not due_of(None, 10, DAY).due(key, version, written(before + timedelta(seconds=1)), after)
