"""FactTurns: no kept fact gets older than its limit, whatever the hour of the runs, and the runs are even."""

from __future__ import annotations

from collections import Counter
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from auditor.audit.keeping.turns import FactTurns

DAY: Final = 86_400.0
START: Final = 1_800_000_000.0


@given(
    limit=st.floats(60, 40 * DAY),
    every=st.floats(60, 9 * DAY),
    gaps=st.lists(st.floats(0.01, 30), min_size=1, max_size=40),
    key=st.text(st.characters(), max_size=5),
    version=st.none() | st.text(max_size=3),
)
def test_no_kept_fact_is_older_than_its_limit(
    limit: float, every: float, gaps: list[float], key: str, version: str | None
) -> None:
    """gaps: the times between the runs, in multiples of the planned one."""
    now = read = START
    for gap in gaps:
        if now - read + gap * every > limit:
            assert gap > 1 or FactTurns(limit, every, now).due(key, version, read, now)
        now += gap * every
        if FactTurns(limit, every, now).due(key, version, read, now):
            read = now
        assert 0 <= now - read <= limit


def test_each_version_is_asked_once_in_a_round_of_nights_that_begin_late() -> None:
    read = {(f"logs/{key:06d}", version): START for key in range(500) for version in (None, "v")}
    asked: Counter[tuple[str, str | None]] = Counter()
    for night in range(1, 13):
        now = START + night * DAY + 700 * (night % 3)
        turns = FactTurns(7 * DAY, DAY, now)
        due = [name for name in read if turns.due(*name, read[name], now)]
        assert 120 <= len(due) <= 220
        assert not any(turns.due(*name, now, now + 60) for name in due)
        read |= dict.fromkeys(due, now)
        asked.update(due)
    assert set(asked.values()) == {2}
    assert len(asked) == len(read)


def test_fact_of_the_future_is_due_and_one_without_a_limit_never() -> None:
    assert FactTurns(DAY, DAY, START).due("k", None, START + 1, START)
    forever = FactTurns(float("inf"), DAY, START)
    assert forever.due("k", None, START + 1, START)
    assert not any(forever.due(f"k{number}", None, START - 9_999 * DAY, START) for number in range(100))
