"""The rows of a report are spread over ranges: each row once, whatever ends the process, and never half of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from auditor.audit.sources.inventory_by_range import load_range, spread_newest
from auditor.audit.sources.inventory_reports import ReportTimes
from auditor.audit.sources.spread_file import NAME
from auditor.errors import InventoryError, RunStopped, RunTaken
from auditor.runs.paths import range_name, run_path
from auditor.runs.run_files import LISTING, PlannedRange
from auditor.runs.stores.base import Store
from auditor.runs.stores.local import LocalStore
from auditor.s3.inventory.lookup import Match
from tests.audit.sources.test_inventory_reports import BUCKET, KEYS, OLDER, PLACE, TARGET, ref
from tests.support.inventory_reports import WrittenReport, into, plain_rows, write_report
from tests.support.samples.reports import sample_file

RUN: Final = "20260305T030405Z-0a1b2c"
FOLDER: Final = run_path(BUCKET, RUN)
CUTS: Final = (None, *sorted((KEYS[3], KEYS[4], KEYS[11], "nothing like it")), None)
"""The limits of the ranges, which are odd keys and one that is no key."""
RANGES: Final = [PlannedRange(range_name(number), *limits, 1) for number, limits in enumerate(pairwise(CUTS))]
PLAN: Final = sample_file(run=RUN, target=TARGET, source=LISTING, ranges=tuple(RANGES))


class DyingError(Exception):
    """The process is killed."""


class DyingStore(LocalStore):
    """Dies after a write. writes: the number of those before it."""

    def __init__(self, root: Path, writes: int) -> None:
        super().__init__(root)
        self.left = writes

    def put(self, path: str, data: bytes) -> None:
        super().put(path, data)
        self.left -= 1
        if self.left < 0:
            raise DyingError


class CountingStore(LocalStore):
    """Notes the data files that are read."""

    read: tuple[str, ...] = ()

    def stream(self, path: str) -> Iterator[bytes] | None:
        self.read += (path,)
        return super().stream(path)


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    return tmp_path / "reports"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def write(folder: Path, **options: Any) -> WrittenReport:
    return write_report(into(folder), plain_rows(BUCKET, KEYS), bucket=BUCKET, **{"files": 4, **options})


def spread(reports: Store, store: Store, **options: Any) -> list[str]:
    """Spread in pieces of a few rows, saved after each data file. Return what the run leaves out of the report."""
    usual: dict[str, Any] = {"memory": 600, "save_seconds": 0.0}
    found = spread_newest(reports, PLACE, store, PLAN, ReportTimes(), **{**usual, **options})
    assert found.complete
    return [found.manifest, *found.origin.refused]


def stopped_in(file: int) -> Any:
    """A stop that comes while this data file is read."""
    asked = iter([False] * file + [True])
    return lambda: next(asked)


def assert_each_once(store: Store) -> None:
    """Each listed key is found in the rows, each looked up in its own range alone."""
    for one in PLAN.ranges:
        target = PLAN.target_of(one)
        keys = [key for key in KEYS if target.covers(key)]
        loaded = load_range(store, RUN, one.id, target)
        assert loaded is not None
        with loaded:
            loaded.lookup.facts_of_page([ref(key) for key in keys])
        assert loaded.lookup.matches == ({Match.FOUND: len(keys)} if keys else {})


def test_killed_at_any_write_the_next_process_has_each_row_once(reports: Path, tmp_path: Path) -> None:
    write(reports)
    counting = DyingStore(tmp_path / "counted", 1000)
    spread(LocalStore(reports), counting)
    writes = 1000 - counting.left
    assert writes > 20
    for number in range(writes):
        store = LocalStore(tmp_path / f"{number}")
        with pytest.raises(DyingError):
            spread(LocalStore(reports), DyingStore(tmp_path / f"{number}", number))
        begun = tmp_path / f"{number}" / FOLDER / NAME
        if not begun.exists() or json.loads(begun.read_text())["done"] < 4:
            with pytest.raises(InventoryError, match="no whole"):
                load_range(store, RUN, "00000", PLAN.target)
        spread(LocalStore(reports), store)
        assert_each_once(store)


@pytest.mark.parametrize("options", [{}, {"memory": 10**6, "save_seconds": 3600.0}], ids=["little memory", "usual"])
def test_process_goes_on_after_the_last_whole_data_file(reports: Path, out: Path, options: dict[str, Any]) -> None:
    written, source = write(reports), CountingStore(reports)
    with pytest.raises(RunStopped):
        spread(source, LocalStore(out), stopped=stopped_in(2), **options)
    spread(source, LocalStore(out), **options)
    assert [source.read.count(name) for name in written.files] == [1, 1, 2, 1]
    spread(source, LocalStore(out), **options)
    assert [source.read.count(name) for name in written.files] == [1, 1, 2, 1], "a whole report is read once"
    assert_each_once(LocalStore(out))


def test_begun_report_that_is_another_one_or_damaged_by_now_counts_for_nothing(reports: Path, tmp_path: Path) -> None:
    older, newest = write(reports, created=OLDER), write(reports)
    stores = [LocalStore(tmp_path / name) for name in ("damaged", "another")]
    for store in stores:
        with pytest.raises(RunStopped):
            spread(LocalStore(reports), store, stopped=stopped_in(2))
    whole = (reports / newest.files[-1]).read_bytes()
    (reports / newest.files[-1]).write_bytes(b"no gzip")
    manifest, refused = spread(LocalStore(reports), stores[0])
    assert (manifest, newest.files[-1] in refused) == (older.manifest, True)
    (reports / newest.files[-1]).write_bytes(whole)
    write(reports, files=3)
    assert spread(LocalStore(reports), stores[1]) == [newest.manifest]
    for store in stores:
        assert_each_once(store)


def test_damaged_spread_file_counts_as_none(reports: Path, out: Path) -> None:
    write(reports)
    store = LocalStore(out)
    for text in ("", "{}", '{"format": 2}', "[", '{"format": 1, "run": "x"}'):
        spread(LocalStore(reports), store)
        (out / FOLDER / NAME).write_text(text)
        with pytest.raises(InventoryError, match="no whole"):
            load_range(store, RUN, "00000", PLAN.target)


def test_two_processes_do_not_spread_one_run(reports: Path, out: Path) -> None:
    write(reports)
    release = LocalStore(out).hold(FOLDER, "inventory")
    with pytest.raises(RunTaken):
        spread(LocalStore(reports), LocalStore(out))
    release()
