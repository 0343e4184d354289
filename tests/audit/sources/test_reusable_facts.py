"""RefreshSchedule: no kept fact gets older than its limit, whatever the hour of the runs, and the runs are even."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from auditor.audit.sources.last_run import RefreshSchedule

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
            assert gap > 1 or RefreshSchedule(limit, every, now).due(key, version, read, now)
        now += gap * every
        if RefreshSchedule(limit, every, now).due(key, version, read, now):
            read = now
        assert 0 <= now - read <= limit
