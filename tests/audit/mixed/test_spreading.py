"""The rows of a report are spread over ranges: each row once, whatever ends the process, and never half of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import boto3
import pytest

from auditor.audit.mixed.range_rows import load_range
from auditor.audit.mixed.reports import ReportTimes, load_newest
from auditor.audit.mixed.spread_file import NAME, SpreadFile, SpreadFolder
from auditor.audit.mixed.spreading import spread_newest
from auditor.errors import InventoryError, RunStopped, RunTaken
from auditor.model.target import Target
from auditor.runs.paths import run_path
from auditor.runs.plan_file import LISTING, PlanFile, PlannedRange, numbered
from auditor.runs.stores import open_store
from auditor.runs.stores.base import Store
from auditor.runs.stores.local import LocalStore
from auditor.s3.inventory.lookup import Match
from tests.audit.mixed.test_reports import BUCKET, KEYS, OLDER, PLACE, TARGET, ref
from tests.support.inventory_reports import FORMS, WrittenReport, into, plain_rows, write_report

RUN: Final = "20260305T030405Z-0a1b2c"
FOLDER: Final = run_path(BUCKET, RUN)
CUTS: Final = (None, KEYS[3], KEYS[4], KEYS[11], "nothing like it", None)
"""The limits of the ranges, which are odd keys and one that is no key."""
TINY: Final[dict[str, Any]] = {"memory": 600, "save_seconds": 0.0}
"""Pieces of a few rows, saved after each data file."""


def plan_of(target: Target = TARGET, cuts: tuple[str | None, ...] = CUTS) -> PlanFile:
    limits = [cuts[0], *sorted(cut for cut in cuts[1:-1] if cut is not None), cuts[-1]]
    ranges = tuple(
        PlannedRange(numbered(number), low, high, 1) for number, (low, high) in enumerate(pairwise(limits), 1)
    )
    return PlanFile(run=RUN, target=target, source=LISTING, exact=False, ranges=ranges)


PLAN: Final = plan_of()


class DyingError(Exception):
    """The process is killed."""


class DyingStore(LocalStore):
    """Dies at a write: `after` it or before it."""

    def __init__(self, root: Path, writes: int, *, after: bool) -> None:
        super().__init__(root)
        self._left = writes
        self._after = after

    def put(self, path: str, data: bytes) -> None:
        self._left -= 1
        if self._left < 0 and not self._after:
            raise DyingError
        super().put(path, data)
        if self._left < 0:
            raise DyingError


class CountingStore(LocalStore):
    """Counts the writes, and the data files that are read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.writes = 0
        self.read: list[str] = []

    def put(self, path: str, data: bytes) -> None:
        self.writes += 1
        super().put(path, data)

    def stream(self, path: str) -> Iterator[bytes] | None:
        self.read.append(path)
        return super().stream(path)


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    return tmp_path / "reports"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def write(folder: Path, **options: Any) -> WrittenReport:
    return write_report(into(folder), plain_rows(BUCKET, KEYS), bucket=BUCKET, **{"files": 4, **options})


def spread(reports: Path | Store, store: Store, plan: PlanFile = PLAN, **options: Any) -> SpreadFile:
    source = LocalStore(reports) if isinstance(reports, Path) else reports
    return spread_newest(source, PLACE, store, plan, ReportTimes(), **{**TINY, **options})


def rows(store: Store, plan: PlanFile = PLAN) -> list[tuple[str, int]]:
    """The ranges in which the listed keys are found in the rows, each key looked up in its own range alone."""
    found = []
    for one in plan.ranges:
        target = plan.target_of(one)
        keys = [key for key in KEYS if target.covers(key)]
        loaded = load_range(store, RUN, one.id, target)
        assert loaded is not None
        with loaded:
            loaded.lookup.facts_of_page([ref(key) for key in keys])
        assert loaded.lookup.matches == ({Match.FOUND: len(keys)} if keys else {})
        found.append((one.id, len(keys)))
    return found


def lines_of(store: Store, spread: SpreadFile) -> int:
    return sum(piece.lines for pieces in spread.pieces.values() for piece in pieces)


@pytest.mark.parametrize("form", FORMS)
def test_each_row_is_in_its_own_range(reports: Path, out: Path, form: str) -> None:
    write(reports, form=form)
    store = LocalStore(out)
    found = spread(reports, store)
    assert (found.complete, found.rows, lines_of(store, found)) == (True, len(KEYS), len(KEYS))
    assert sum(number for _, number in rows(store)) == len(KEYS)


def test_rows_outside_the_target_are_left_out(reports: Path, out: Path) -> None:
    write(reports)
    target = Target(BUCKET, start_after=KEYS[2], stop_at=KEYS[9])
    plan = plan_of(target, (KEYS[2], KEYS[5], KEYS[9]))
    store = LocalStore(out)
    assert lines_of(store, spread(reports, store, plan)) == 7
    assert rows(store, plan) == [("00001", 3), ("00002", 4)]


def test_report_is_read_once(reports: Path, out: Path) -> None:
    written, source, store = write(reports), CountingStore(reports), LocalStore(out)
    first = spread(source, store)
    assert spread(source, store) == first
    assert [source.read.count(name) for name in written.files] == [1, 1, 1, 1]


@pytest.mark.parametrize("after", [pytest.param(False, marks=pytest.mark.slow), True], ids=["before", "after"])
def test_killed_at_any_write_the_next_process_has_each_row_once(reports: Path, tmp_path: Path, after: bool) -> None:
    write(reports)
    counting = CountingStore(tmp_path / "counted")
    spread(reports, counting)
    assert counting.writes > 20
    for number in range(counting.writes):
        out = tmp_path / f"{number}"
        with pytest.raises(DyingError):
            spread(reports, DyingStore(out, number, after=after))
        store = LocalStore(out)
        begun = SpreadFolder(store, FOLDER, RUN).load()
        if begun is None or not begun.complete:
            with pytest.raises(InventoryError, match="no whole"):
                load_range(store, RUN, "00001", PLAN.target)
        assert lines_of(store, spread(reports, store)) == len(KEYS)
        assert sum(found for _, found in rows(store)) == len(KEYS)


def test_process_goes_on_after_the_last_whole_data_file(reports: Path, out: Path) -> None:
    written, source = write(reports), CountingStore(reports)
    asked = iter([False, False, True])
    with pytest.raises(RunStopped):
        spread(source, LocalStore(out), stopped=lambda: next(asked))
    assert spread(source, LocalStore(out)).complete
    assert [source.read.count(name) for name in written.files] == [1, 1, 2, 1]


def test_stop_saves_the_data_files_that_are_whole(reports: Path, out: Path) -> None:
    written, source, asked = write(reports), CountingStore(reports), iter([False, False, True])
    usual: dict[str, Any] = {"memory": 10**6, "save_seconds": 3600.0}
    with pytest.raises(RunStopped):
        spread(source, LocalStore(out), stopped=lambda: next(asked), **usual)
    begun = SpreadFolder(LocalStore(out), FOLDER, RUN).load()
    assert begun is not None
    assert (begun.done, begun.rows) == (2, lines_of(LocalStore(out), begun))
    spread(source, LocalStore(out), **usual)
    assert [source.read.count(name) for name in written.files] == [1, 1, 2, 1]
    assert sum(number for _, number in rows(LocalStore(out))) == len(KEYS)


def test_report_that_is_another_one_by_now_is_read_from_its_begin(reports: Path, out: Path) -> None:
    write(reports)
    asked, store = iter([False, False, True]), LocalStore(out)
    with pytest.raises(RunStopped):
        spread(reports, store, stopped=lambda: next(asked))
    assert SpreadFolder(store, FOLDER, RUN).load() is not None
    write(reports, files=3)
    assert lines_of(store, spread(reports, store)) == len(KEYS)
    assert sum(number for _, number in rows(store)) == len(KEYS)


def test_nothing_counts_of_a_report_whose_last_data_file_is_damaged(reports: Path, out: Path) -> None:
    older, newest = write(reports, created=OLDER), write(reports)
    (reports / newest.files[-1]).write_bytes(b"no gzip")
    store = LocalStore(out)
    found = spread(reports, store)
    assert found.manifest == older.manifest
    assert [newest.files[-1] in words for words in found.origin.refused] == [True]
    assert lines_of(store, found) == len(KEYS)
    assert sum(number for _, number in rows(store)) == len(KEYS)


def test_begun_report_whose_rest_is_damaged_is_given_up(reports: Path, out: Path) -> None:
    older, newest = write(reports, created=OLDER), write(reports)
    asked, store = iter([False, False, True]), LocalStore(out)
    with pytest.raises(RunStopped):
        spread(reports, store, stopped=lambda: next(asked))
    (reports / newest.files[-1]).write_bytes(b"no gzip")
    assert spread(reports, store).manifest == older.manifest
    assert sum(number for _, number in rows(store)) == len(KEYS)


def test_range_begins_after_a_key(reports: Path, out: Path) -> None:
    write(reports)
    store = LocalStore(out)
    spread(reports, store, plan_of(cuts=(None, None)))
    loaded = load_range(store, RUN, "00001", Target(BUCKET, start_after=KEYS[4]))
    assert loaded is not None
    with loaded:
        loaded.lookup.facts_of_page([ref(key) for key in KEYS])
    assert loaded.lookup.matches == {Match.FOUND: len(KEYS) - 5, Match.MISSING: 5}


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def add(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0" * 8)


@pytest.mark.parametrize("damage", [flip, cut, empty, add, Path.unlink])
def test_damaged_piece_condemns_all_rows_of_its_range(reports: Path, out: Path, damage: Any) -> None:
    write(reports)
    store = LocalStore(out)
    found = spread(reports, store)
    range_id, pieces = next(iter(found.pieces.items()))
    damage(out / FOLDER / "inventory" / pieces[-1].name)
    with pytest.raises(InventoryError, match=r"is damaged|is gone"):
        load_range(store, RUN, range_id, PLAN.target_of(PLAN.range(range_id)))


@pytest.mark.parametrize("text", ["", "{}", '{"format": 2}', "[", '{"format": 1, "run": "x"}'])
def test_damaged_file_counts_as_none(reports: Path, out: Path, text: str) -> None:
    write(reports)
    store = LocalStore(out)
    spread(reports, store)
    (out / FOLDER / NAME).write_text(text)
    with pytest.raises(InventoryError, match="no whole"):
        load_range(store, RUN, "00001", PLAN.target)
    assert spread(reports, store).complete


def test_everything_is_deleted_in_the_end(reports: Path, out: Path) -> None:
    write(reports)
    with pytest.raises(DyingError):
        spread(reports, DyingStore(out, 5, after=True))
    store = LocalStore(out)
    spread(reports, store)
    SpreadFolder(store, FOLDER, RUN).clear()
    assert store.list(f"{FOLDER}/") == []


def test_two_processes_do_not_spread_one_run_in_a_directory(reports: Path, out: Path) -> None:
    write(reports)
    release = LocalStore(out).hold(FOLDER, "inventory")
    with pytest.raises(RunTaken):
        spread(reports, LocalStore(out))
    release()
    assert spread(reports, LocalStore(out)).complete


def test_the_slower_one_of_two_processes_gives_way_in_a_bucket(reports: Path, moto_url: str) -> None:
    write(reports)
    boto3.client("s3", endpoint_url=moto_url, region_name="us-east-1").create_bucket(Bucket="spread-out")
    with (
        open_store("s3://spread-out", endpoint_url=moto_url) as store,
        open_store("s3://spread-out", endpoint_url=moto_url) as other,
    ):
        late = SpreadFolder(other, FOLDER, RUN)
        assert late.load() is None
        found = spread(reports, store)
        with pytest.raises(RunTaken):
            late.save(found)
        assert sum(number for _, number in rows(store)) == len(KEYS)


def test_spread_rows_are_those_of_one_process(reports: Path, out: Path) -> None:
    """Two rows of one object that differ stay a contradiction, and equal ones stay one row."""
    given = [*plain_rows(BUCKET, KEYS), *plain_rows(BUCKET, KEYS[:1], Size="7"), *plain_rows(BUCKET, KEYS[1:2])]
    write_report(into(reports), given, bucket=BUCKET, files=5)
    with load_newest(LocalStore(reports), PLACE, PLAN.target) as one:
        one.lookup.facts_of_page([ref(key) for key in KEYS])
    store = LocalStore(out)
    spread(reports, store)
    matches = one.lookup.matches.copy()
    for part in PLAN.ranges:
        target = PLAN.target_of(part)
        loaded = load_range(store, RUN, part.id, target)
        assert loaded is not None
        with loaded:
            loaded.lookup.facts_of_page([ref(key) for key in KEYS if target.covers(key)])
        matches.subtract(loaded.lookup.matches)
    assert one.lookup.matches[Match.CONTRADICTED] == 1
    assert not any(matches.values())
