"""Two processes on one run: in a bucket the later claim has it, in a directory the second is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from auditor.errors import OutputError, RunTaken
from auditor.runs.checkpoint import Checkpoint, load_checkpoint
from auditor.runs.parts import KINDS
from auditor.runs.paths import FIRST, run_path
from auditor.runs.reading import RunReader
from auditor.runs.segment import Segment
from auditor.runs.stores.local import LocalStore
from auditor.runs.stores.s3 import S3Store
from auditor.runs.tally import Tally
from tests.support.failing_stores import MemoryObjects
from tests.support.killed_run import end, judgements, put, put_all
from tests.support.run_lines import run_lines
from tests.support.samples.reports import RUN, sample_summary

PART = 5
KEYS = [judgement.evidence.ref.key for judgement in judgements()]
FOLDER = run_path("audited", RUN)


class Process:
    """The store, the tally and the run folder of one process."""

    def __init__(self, store: S3Store) -> None:
        self.store = store
        self.state: Checkpoint | None = load_checkpoint(store, "audited", RUN, FIRST)
        self.tally = self.state.tally if self.state else Tally()
        self.folder = Segment(store, "audited", RUN, tally=self.tally, state=self.state, part_lines=PART)

    def write(self, until: int) -> None:
        """Write on until the run has that many objects."""
        put_all(self.folder, self.tally, judgements()[self.tally.coverage["listed"] : until])

    def end(self) -> None:
        end(self.store, self.folder, sample_summary(self.tally), "<p>", update_latest=True)
        self.folder.close()


class Start:
    """Starts processes that write one run in a bucket; each goes on from the checkpoint that it finds."""

    def __init__(self) -> None:
        self._objects = MemoryObjects()
        self._processes: list[Process] = []

    def __call__(self) -> Process:
        self._processes.append(Process(S3Store(self._objects, "results", "runs")))
        return self._processes[-1]

    def close(self) -> None:
        for process in self._processes:  # also the ones that the test killed
            process.folder._discard()
            process.store.close()


@pytest.fixture
def start() -> Iterator[Start]:
    with closing(Start()) as made:
        yield made


def check(store: S3Store) -> None:
    """Every object has one line, every other line its object, and the counts are those of the lines."""
    run = RunReader(store, "audited", RUN)
    summary = run.summary
    assert summary is not None
    assert summary.complete
    lines = {kind: run_lines(run, kind) for kind in KINDS}
    assert [line["key"] for line in lines["objects"]] == KEYS
    assert [line["key"] for line in lines["findings"]] == [f.key for j in judgements() for f in j.findings]
    assert len(lines["undecided"]) == summary.coverage.undecided
    assert summary.coverage.listed == len(KEYS)
    assert sum(summary.findings.values()) == len(lines["findings"])
    assert store.list(f"{FOLDER}/checkpoint/") == []


def begun(start: Start, objects: int = 10) -> None:
    """Make a run that was handed over after so many objects."""
    first = start()
    first.folder.prepare()
    first.write(objects)
    first.folder.save()
    first.folder.close()
    state = load_checkpoint(first.store, "audited", RUN, FIRST)
    assert state is not None
    assert state.writer is None


def test_of_two_that_go_on_from_one_checkpoint_one_is_refused_before_it_writes(start: Start) -> None:
    begun(start)
    one, two = start(), start()
    one.folder.prepare()
    one.write(17)
    with pytest.raises(
        RunTaken, match=r"s3://results/runs/.*checkpoint/00000\.json is being written by another process"
    ):
        two.folder.prepare()
    two.folder.close()
    one.write(len(KEYS))
    one.end()
    check(one.store)


def test_of_two_claims_at_the_very_same_time_one_is_refused(start: Start) -> None:
    """Both have read the checkpoint when the first of them writes it."""
    begun(start)
    one, two = start(), start()
    read = one.store.get_tagged

    def overtaken(path: str) -> Any:
        found = read(path)
        two.folder.prepare()
        return found

    one.store.get_tagged = overtaken  # type: ignore[method-assign]
    with pytest.raises(RunTaken):
        one.folder.prepare()
    two.write(len(KEYS))
    two.end()
    check(two.store)


def test_a_late_claim_leaves_a_run_alone_that_was_handed_over_since(start: Start) -> None:
    begun(start)
    late = start()
    one = start()
    one.folder.prepare()
    one.write(len(KEYS))
    one.folder.save()
    one.folder.close()
    with pytest.raises(RunTaken):
        late.folder.prepare()
    third = start()
    third.folder.prepare()
    third.end()
    check(third.store)


def test_a_process_that_has_seen_no_checkpoint_leaves_a_run_alone_that_is_complete_by_now(start: Start) -> None:
    """The checkpoints of a complete run are gone: its range must not look as if it had not begun."""
    late, one = start(), start()
    one.folder.prepare()
    one.write(len(KEYS))
    one.end()
    with pytest.raises(RunTaken, match="has been completed by another process"):
        late.folder.prepare()
    check(one.store)


@pytest.mark.parametrize("objects", [0, 17])
def test_a_writer_that_was_killed_is_replaced_at_once(start: Start, objects: int) -> None:
    for _ in range(3):
        killed = start()
        killed.folder.prepare()
        if objects:
            killed.write(objects)
    last = start()
    assert last.state is not None
    assert last.state.begun is bool(objects)
    last.folder.prepare()
    last.write(len(KEYS))
    last.end()
    check(last.store)


def test_a_late_writer_spoils_nothing() -> None:
    for lines, until in product((0, 4), (10, 18, len(KEYS))):  # its lines that are in no part; what the successor wrote
        with closing(Start()) as start:
            begun(start)
            sleeper = start()
            sleeper.folder.prepare()
            for judgement in judgements()[10 : 10 + lines]:
                put(sleeper.folder, sleeper.tally, judgement)
            successor = start()
            successor.folder.prepare()
            successor.write(until)
            if until == len(KEYS):
                successor.end()
            with pytest.raises(RunTaken):
                sleeper.folder.save()
            with pytest.raises(RunTaken):
                end(sleeper.store, sleeper.folder, sample_summary(), "<p>late")
            sleeper.folder.close()
            if until != len(KEYS):
                successor.write(len(KEYS))
                successor.end()
            check(successor.store)
            assert successor.store.get(f"{FOLDER}/report.html") == b"<p>"


def test_a_part_that_was_put_in_place_at_the_last_moment_does_not_count(start: Start) -> None:
    """The writer dies between a part and its checkpoint. The successor skips that part."""
    begun(start)
    killed = start()
    killed.folder.prepare()

    def dies(path: str, data: bytes, tag: str | None) -> str | None:
        raise OutputError("killed")

    killed.store.put_if = dies  # type: ignore[method-assign]
    with pytest.raises(OutputError, match="killed"):
        killed.write(len(KEYS))
    assert any("part-00000-00002" in path for path in killed.store.list(f"{FOLDER}/objects/"))
    second = start()
    second.folder.prepare()
    second.write(len(KEYS))
    second.end()
    check(second.store)


def lost_once(store: S3Store, method: str) -> None:
    """Do the first write and lose its answer: the SDK's own retry then meets a refusal."""
    real, first = getattr(store, method), iter([True])

    def answer(*args: Any) -> Any:
        found = real(*args)
        return (None if method == "put_if" else real(*args)) if next(first, False) else found

    setattr(store, method, answer)


def test_a_write_whose_answer_was_lost_is_recognized(start: Start) -> None:
    begun(start)
    process = start()
    lost_once(process.store, "put_if")
    process.folder.prepare()
    lost_once(process.store, "put_if")
    process.write(len(KEYS))
    process.end()
    check(process.store)


def test_a_checkpoint_is_tried_five_times_while_another_write_is_under_way() -> None:
    """S3 refuses a conditional write with 409 during another write of the object, although the condition holds."""
    for conflicts in (1, 4, 5, 6):
        objects = MemoryObjects(
            lambda number, _, most=conflicts: number <= most,  # type: ignore[misc]
            "ConditionalRequestConflict",
            409,
        )
        process = Process(S3Store(objects, "results", "runs"))
        if conflicts < 5:
            process.folder.prepare()
            assert load_checkpoint(process.store, "audited", RUN, FIRST) is not None
        else:
            with pytest.raises(RunTaken):
                process.folder.prepare()
        assert len(objects.written) == min(conflicts + 1, 5)


# In a directory a lock does it: the second process is refused until the first ends or is killed.


def local_folder(root: Path, range_id: str = "00000", run: str = RUN) -> Segment:
    return Segment(LocalStore(root), "audited", run, range_id, tally=Tally())


def test_second_writer_is_refused_until_the_first_closes(tmp_path: Path) -> None:
    with local_folder(tmp_path, "00001") as first, local_folder(tmp_path, "00002") as other_range:
        first.prepare()
        other_range.prepare()
        with local_folder(tmp_path, "00001", RUN.replace("0a1b2c", "ffffff")) as another:
            another.prepare()
        with local_folder(tmp_path, "00001") as second, pytest.raises(OutputError, match="another process"):
            second.prepare()
    with local_folder(tmp_path, "00001") as third:
        third.prepare()
        end(LocalStore(tmp_path), third, sample_summary())
    with local_folder(tmp_path, "00001") as late, pytest.raises(RunTaken, match="has been completed"):
        late.prepare()
