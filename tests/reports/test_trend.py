"""The counts of the last runs, night by night."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from auditor.reports.trend import TrendNight, trend
from auditor.runs.folder import RunFolder
from auditor.runs.reading import RunReader
from auditor.runs.stores.local import LocalStore
from auditor.runs.tally import Tally
from tests.support.samples.reports import judged, sample_summary, tally_of, target


def night(store: LocalStore, run: str, previous: str | None, objects: int) -> RunReader:
    """A complete run with so many private objects."""
    tally = tally_of(*(judged(f"{number}") for number in range(objects)))
    with RunFolder(store, "audited", run, target=target(), tally=Tally(), previous=previous) as folder:
        folder.prepare()
        folder.finish(replace(sample_summary(tally), run=run), "")
    return RunReader(store, "audited", run)


def test_night_without_a_run_is_missing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    first = night(store, "20260101T030000Z-0a1b2c", None, 1)
    twice = night(store, "20260102T030000Z-0a1b2c", first.run_id, 2)
    again = night(store, "20260102T190000Z-0a1b2c", twice.run_id, 3)
    last = night(store, "20260105T030000Z-0a1b2c", again.run_id, 4)
    assert last.summary is not None
    found = trend(last.summary, last.previous)
    assert [(one.day, one.listed) for one in found] == [
        ("2026-01-01", 1),
        ("2026-01-02", 3),
        ("2026-01-03", None),
        ("2026-01-04", None),
        ("2026-01-05", 4),
    ]
    assert found[2] == TrendNight("2026-01-03")
    assert [one.day for one in trend(last.summary, last.previous, 4)] == [
        "2026-01-02",
        "2026-01-03",
        "2026-01-04",
        "2026-01-05",
    ]


def test_damaged_run_ends_the_row(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    first = night(store, "20260101T030000Z-0a1b2c", None, 1)
    second = night(store, "20260102T030000Z-0a1b2c", first.run_id, 2)
    last = night(store, "20260103T030000Z-0a1b2c", second.run_id, 3)
    store.put(f"{second.path}/summary.json", b"damaged")
    assert last.summary is not None
    assert [one.listed for one in trend(last.summary, last.previous)] == [3]


def test_first_run_stands_alone(tmp_path: Path) -> None:
    run = night(LocalStore(tmp_path), "20260101T030000Z-0a1b2c", None, 1)
    assert run.summary is not None
    assert [one.run for one in trend(run.summary, run.previous)] == [run.run_id]
