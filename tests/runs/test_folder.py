"""A run folder has whole parts only, and a killed run goes on without losing or doubling a line."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from auditor.audit.judging_configuration import finish_end
from auditor.errors import OutputError, UsageError
from auditor.model.target import Target
from auditor.offline.library.runs import check_run
from auditor.runs.checkpoint import load_checkpoint
from auditor.runs.line_buffer import FLUSH_BYTES
from auditor.runs.paths import FIRST, checkpoint_name, new_run_id, parse_run_id, run_path
from auditor.runs.reading import RunReader, last_run
from auditor.runs.segment import Segment
from auditor.runs.stores.local import LocalStore
from auditor.runs.tally import Tally
from tests.support.encoded_lines import encode_object
from tests.support.failing_stores import FullStore
from tests.support.fakes.caller import FakeTime
from tests.support.killed_run import PART, DyingStore, begin, end, judgements, put, put_all
from tests.support.run_lines import run_lines
from tests.support.samples.reports import RUN, judged, sample_summary, tally_of, target

FOLDER = f"bucket=audited/run={RUN}"


def opened(store: LocalStore, tally: Tally, **changes: Any) -> Segment:
    begin(store)
    folder = Segment(store, "audited", RUN, tally=tally, **changes)
    try:
        folder.prepare()
    except BaseException:
        folder.close()
        raise
    return folder


def keys(store: LocalStore, kind: str = "objects") -> list[str]:
    return [line["key"] for line in run_lines(RunReader(store, "audited", RUN), kind)]


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def hidden(store: LocalStore) -> list[str]:
    return sorted(path.name for path in Path(store.uri()).glob("**/.*") if not path.name.endswith(".lock"))


@pytest.fixture
def far_from_greenwich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "XXX-9")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_from_greenwich")
def test_run_ids_say_when_and_sort() -> None:
    east = timezone(timedelta(hours=2))
    run_id = new_run_id(datetime(2026, 1, 2, 5, 4, 5, 999, east), bytes.fromhex("0a1b2cff"))
    assert run_id == RUN
    assert parse_run_id(run_id) == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert new_run_id(datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC), b"\0\0\0") > run_id


def test_text_that_is_no_run_id_and_name_that_is_no_bucket() -> None:
    for text in ("", "latest", RUN.upper(), RUN + "0", "20260230T030405Z-0a1b2c", f"../{RUN}", f"{RUN}\n"):
        with pytest.raises(UsageError, match="is not a run ID"):
            parse_run_id(text)
    for bucket in ("", "a/b", "../up", "a b", ".hidden"):
        with pytest.raises(UsageError, match="is not a bucket name"):
            run_path(bucket, RUN)


def test_part_that_has_been_open_long_enough(store: LocalStore) -> None:
    tally, clock = Tally(), FakeTime()
    with opened(store, tally, clock=clock.clock) as folder:
        clock.now = 2000.0  # an empty part does not age
        put(folder, tally, judged("a"))
        clock.now = 2059.0
        folder.check_due()
        folder.flush()
        assert keys(store) == []
        clock.now = 2060.0
        folder.check_due()
        folder.flush()
        assert keys(store) == ["a"]
        clock.now = 3000.0
        folder.check_due()
        folder.flush()
        assert put(folder, tally, judged("b")) is False
        clock.now = 3060.0
        assert put(folder, tally, judged("c")) is True
        folder.flush()
    assert keys(store) == ["a", "b", "c"]
    assert len(store.list(f"{FOLDER}/objects/")) == 2


def test_write_asks_for_a_flush_before_memory_grows(store: LocalStore) -> None:
    tally = Tally()
    with opened(store, tally) as folder:
        size = len(encode_object(judged("k" * 1000), None))
        written = next(n for n in itertools.count(1) if put(folder, tally, judged("k" * 1000)))
        assert FLUSH_BYTES <= written * size < FLUSH_BYTES + size
        folder.flush()
        assert put(folder, tally, judged("l")) is False
        growing = Path(store.uri(FOLDER)) / ".objects-part-00000-00000.tmp"
        assert growing.exists()
        assert store.list(f"{FOLDER}/objects/") == []
    assert not growing.exists()


def versions(key: str, *ids: str) -> list[Any]:
    return [judged(key, version_id=version) for version in ids]


def test_part_never_ends_between_two_versions_of_a_key(store: LocalStore) -> None:
    tally = Tally()
    with opened(store, tally, part_lines=2) as folder:
        put_all(folder, tally, [*versions("a", "1", "2", "3", "4"), *versions("b", "1")])
        state = load_checkpoint(store, "audited", RUN, FIRST)
        assert state is not None
        assert (state.next_part, state.start_after) == (1, "a")
        assert state.tally.coverage["listed"] == 4
        assert keys(store) == ["a"] * 4
        folder.save()
    assert keys(store) == ["a"] * 4 + ["b"]


def test_delete_marker_before_a_version_is_not_the_end_of_its_key(store: LocalStore) -> None:
    tally = Tally()
    with opened(store, tally) as folder:
        put_all(folder, tally, versions("a", "1"))
        tally.delete_marker()
        folder.passed("b")
        put_all(folder, tally, versions("b", "1"))
        folder.save(whole_key=False)
        folder.save()
    assert (folder.saved_key, keys(store)) == ("a", ["a"])
    assert (tally.coverage["listed"], tally.coverage["delete_markers"]) == (1, 0)


def test_unfinished_files_of_a_killed_run_are_removed_and_those_of_other_ranges_are_left(
    store: LocalStore, tmp_path: Path
) -> None:
    def unfinished(range_id: str) -> set[str]:
        names = (f".{kind}{range_id}.json.x.tmp" for kind in ("", "parts-", "keys-"))
        return {f".objects-part-{range_id}-00002.tmp", *(f"checkpoint/{name}" for name in names)}

    ids, last = ("00000", "00001"), {f".{name}.x.tmp" for name in ("summary.json", "report.html", "seal.json")}
    for one, other in (ids, ids[::-1]):
        with opened(store, Tally(), range_id=one):
            pass
        (tmp_path / FOLDER / "checkpoint").mkdir(exist_ok=True)
        for name in unfinished(one) | unfinished(other) | last:
            (tmp_path / FOLDER / name).touch()
        with opened(store, Tally(), range_id=one):
            pass
        assert hidden(store) == sorted(Path(name).name for name in unfinished(other) | last)
    put_all(folder := opened(store, tally := Tally()), tally, judgements()[:1])
    end(store, folder, sample_summary(tally))
    folder.close()
    assert hidden(store) == [], "the process that ends the run leaves none"


def finished(store: LocalStore, run_id: str = RUN, complete: bool = True, **aim: Any) -> Any:
    store = LocalStore(Path(store.uri()))  # another process
    with Segment(store, "audited", run_id, tally=Tally(), fresh=True) as folder:
        folder.prepare()
        end(store, folder, sample_summary(complete=complete), "<p>\u00e9", update_latest=True, target=target(**aim))
    data = store.get("bucket=audited/latest.json")
    return json.loads(data) if data else None


def latest(*, versions: dict[str, str] | None = None, **current: str) -> Any:
    """The content of latest.json. current, versions: the run of each prefix; `whole` stands for the whole bucket."""
    runs = {"" if prefix == "whole" else f"{prefix}/": run for prefix, run in current.items()}
    return {"format": 1, "runs": {"current": runs, "versions": versions or {}}}


def test_latest_names_a_run_for_each_target(store: LocalStore) -> None:
    assert finished(store) == latest(whole=RUN)
    assert finished(store, prefix="logs/") == latest(whole=RUN, logs=RUN)
    found = finished(store, prefix="logs/", versions=True)
    assert found == latest(whole=RUN, logs=RUN, versions={"logs/": RUN})
    assert store.get(f"{FOLDER}/report.html") == "<p>\u00e9".encode()


def test_latest_run_of_a_target_is_found_or_there_is_none(store: LocalStore) -> None:
    assert last_run(store, Target("audited")) is None
    finished(store)
    run = last_run(store, Target("audited"))
    assert run is not None
    assert run.path == FOLDER
    assert last_run(store, Target("audited", "logs/")) is None
    current = ('{"runs": {"current": {"": "no run"}}}', '{"runs": {"current": {"": 7}}}')
    for data in ('{"runs": 7}', *current, "[]", "{", "7"):
        store.put("bucket=audited/latest.json", data.replace("{", '{"format": 1, ', 1).encode())
        assert last_run(store, Target("audited")) is None, data


def test_latest_is_the_newest_whole_run_that_ended(store: LocalStore) -> None:
    for aim in ({"start_after": "a"}, {"stop_at": "z"}, {"complete": False}):
        assert finished(store, **aim) is None, aim
    with opened(store, Tally(), state=load_checkpoint(store, "audited", RUN, FIRST)) as folder:
        end(store, folder, sample_summary())  # not told to be the latest
    assert store.get("bucket=audited/latest.json") is None
    low, high, newer = f"{RUN[:-6]}000000", f"{RUN[:-6]}ffffff", RUN.replace("2026", "2027")
    for run_id, expected in ((high, high), (low, low), (newer, newer), (RUN, newer)):  # of one second: the last to end
        assert finished(store, run_id) == latest(whole=expected)


def go_on(store: LocalStore) -> Tally:
    """Resume as the audit does: list after the checkpoint and write the rest, unless the run is complete."""
    if (run := RunReader(store, "audited", RUN)).complete:
        finish_end(run)
        return tally_of(*judgements())  # check_run() compares the counts of the summary with the lines
    state = load_checkpoint(store, "audited", RUN, FIRST)
    tally = state.tally if state else Tally()
    after = state.start_after if state and state.start_after else ""
    rest = [judgement for judgement in judgements() if judgement.evidence.ref.key > after]
    with opened(store, tally, state=state, part_lines=PART) as folder:
        assert hidden(store) == []
        put_all(folder, tally, rest)
        end(store, folder, sample_summary(tally), update_latest=True)
    return tally


def assert_once(store: LocalStore, tally: Tally) -> None:
    """Every line of every judgement is there, once, counted once and sealed."""
    checked = check_run(store.uri(FOLDER))
    assert (checked.faults, checked.lacks) == ((), ())
    expected = Tally()
    for judgement in judgements():
        expected.add(judgement)
    assert tally == expected
    assert keys(store) == [judgement.evidence.ref.key for judgement in judgements()]
    assert len(keys(store, "findings")) == sum(expected.findings.values())
    assert len(keys(store, "undecided")) == expected.coverage["undecided"]
    assert hidden(store) == store.list(f"{FOLDER}/checkpoint/") == []
    assert last_run(store, Target("audited")) is not None


class Stopped(BaseException):
    """Stands for the end of the process."""


class StoppingStore(DyingStore):
    """Stops before its Nth write."""

    def _step(self) -> None:
        self._steps -= 1
        if self._steps == 0:
            raise Stopped


def test_stopped_before_each_write_in_turn(tmp_path: Path) -> None:
    for step in itertools.count(1):
        root = tmp_path / str(step)
        stopping, tally = StoppingStore(root, step), Tally()
        try:
            with opened(stopping, tally, part_lines=PART) as folder:
                put_all(folder, tally, judgements())
                end(stopping, folder, sample_summary(tally), update_latest=True)
        except Stopped:
            assert_once(LocalStore(root), go_on(LocalStore(root)))
        else:
            break
    assert step > 15


def test_full_disk_ends_the_run_and_no_checkpoint_follows(tmp_path: Path) -> None:
    store, tally = FullStore(tmp_path, 5), Tally()
    folder = opened(store, tally, part_lines=PART)
    with pytest.raises(OutputError, match="is out of space: free some"):
        put_all(folder, tally, judgements())
    before = store.get(f"{FOLDER}/{checkpoint_name(FIRST)}")
    assert before is not None
    for use in (folder.flush, folder.save, lambda: put(folder, tally, judged("z"))):
        with pytest.raises(OutputError, match="is out of space"):
            use()
    folder.close()
    assert store.get(f"{FOLDER}/{checkpoint_name(FIRST)}") == before
    assert hidden(store) == []
    store.room = 99
    assert_once(store, go_on(store))
