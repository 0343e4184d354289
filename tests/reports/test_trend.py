"""The counts of the last runs, night by night."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from auditor.model.rollup import TrendNight
from auditor.reports.rollup import RollUpBuilder, finished_rollups
from auditor.reports.trend import trend
from auditor.runs.reading import RunReader
from auditor.runs.run_end import RunClosing
from auditor.runs.stores.local import LocalStore
from tests.support.samples.reports import judged, sample_file, sample_summary, tally_of


def night(store: LocalStore, run: str, previous: RunReader | None, objects: int, *, complete: bool = True) -> RunReader:
    """A run with so many private objects. previous: the run whose trend it carries on."""
    made = replace(sample_summary(tally_of(*(judged(f"{at}") for at in range(objects)))), run=run, complete=complete)
    rollups = finished_rollups(RollUpBuilder(), made, trend(made, previous))
    plan = sample_file(run=run, against=previous.run_id if previous else None)
    closing = RunClosing(store, plan, plan.to_json(), plan.against)
    closing.finish(made, {"rollups.json": rollups.to_json()}, tuple)
    return RunReader(store, "audited", run)


def test_last_run_of_a_day_counts_and_a_night_without_a_run_is_missing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    first = night(store, "20260102T030000Z-0a1b2c", None, 2)
    again = night(store, "20260102T190000Z-0a1b2c", first, 3)
    last = night(store, "20260104T030000Z-0a1b2c", again, 4)
    assert [(one.day, one.listed) for one in last.nights] == [
        ("2026-01-02", 3),
        ("2026-01-03", None),
        ("2026-01-04", 4),
    ]
    assert last.nights[1] == TrendNight("2026-01-03")


def test_damaged_run_ends_the_row(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    first = night(store, "20260101T030000Z-0a1b2c", None, 1)
    second = night(store, "20260102T030000Z-0a1b2c", first, 2)
    store.put(f"{second.path}/summary.json", b"damaged")
    last = night(store, "20260103T030000Z-0a1b2c", RunReader(store, "audited", second.run_id), 3)
    assert [one.listed for one in last.nights] == [3]


def test_trend_is_carried_from_run_to_run_by_two_files_of_the_last_one(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    run = night(store, "20260101T030000Z-0a1b2c", night(store, "20251230T030000Z-0a1b2c", None, 7), 1)
    for day in (2, 4):
        before, run = run, night(store, f"2026010{day}T030000Z-0a1b2c", run, day)
        for name in ("summary.json", "seal.json", "rollups.json"):
            (tmp_path / before.path / name).unlink()  # the next run needs none of them
    expected = [("2025-12-30", 7), ("2025-12-31", None), ("2026-01-01", 1), ("2026-01-02", 2), ("2026-01-03", None)]
    assert [(one.day, one.listed) for one in run.nights] == [*expected, ("2026-01-04", 4)]
    for day in range(5, 10):
        before, run = run, night(store, f"2026010{day}T030000Z-0a1b2c", run, day)
    summary = run.summary
    assert summary is not None
    assert [one.listed for one in trend(summary, before, 8)] == [2, None, 4, 5, 6, 7, 8, 9]
    assert len(trend(summary, before, 3)) == 3
