"""The counts of a verification, and its checkpoint after any of its results."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

from auditor.model.digest import VerifyOutcome
from auditor.verify.checkpoint import VerifyCheckpoint, VerifyFile
from auditor.verify.outcome import Verified
from auditor.verify.pipeline import Done
from auditor.verify.read import ReadResult
from auditor.verify.tally import VerifyTally
from tests.support.samples.reports import RUN

MOMENT = datetime(2026, 1, 2, tzinfo=UTC)


def done(key: str, outcome: VerifyOutcome = VerifyOutcome.MATCH, markers: int = 0, **detail: str) -> Done:
    return Done(key, ReadResult(Verified(key=key, outcome=outcome, size=5, detail=detail)), markers)


def test_key_that_is_read_in_part_is_counted_by_the_next_hop_with_all_its_versions() -> None:
    checkpoint = VerifyCheckpoint(MOMENT, "a", "a")
    for result in (done("b", markers=2), done("c"), done("c")):
        checkpoint.move(result, versions=True)
    checkpoint.paused = {("c", "v3"): {"bytes": 1}, ("d", None): {}}
    written = checkpoint.file(RUN)
    assert (written.start_after, written.begun_after) == ("b", "a")
    assert written.tally.outcomes == {"match": 1}
    read = VerifyCheckpoint.of(VerifyFile.from_json(written.to_json()))
    assert (read.start_after, read.tally.listed, read.tally.delete_markers) == ("b", 1, 2)
    assert read.resumed == {("c", "v3"): {"bytes": 1}, ("d", None): {}}
    checkpoint.paused = {("d", None): {}}
    assert checkpoint.file(RUN).start_after == "c"
    assert checkpoint.file(RUN).tally.outcomes == {"match": 3}


def test_first_key_that_is_read_in_part_leaves_the_begin() -> None:
    checkpoint = VerifyCheckpoint(MOMENT, None, None)
    checkpoint.move(done("b"), versions=True)
    checkpoint.paused = {("b", "v1"): {}}
    written = checkpoint.file(RUN)
    assert (written.start_after, written.tally.outcomes) == (None, {})


def test_without_versions_every_result_is_counted() -> None:
    checkpoint = VerifyCheckpoint(MOMENT, None, None)
    checkpoint.move(done("b"), versions=False)
    checkpoint.move(Done("c", None, 3), versions=False)
    checkpoint.paused = {("c", None): {}}
    written = checkpoint.file(RUN)
    assert (written.start_after, written.tally.outcomes) == ("c", {"match": 1})
    assert checkpoint.tally.delete_markers == 3


def test_each_result_is_counted_once() -> None:
    tally = VerifyTally()
    dear = done("a", VerifyOutcome.LEFT_FOR_COST, storage_class="GLACIER_IR").answer
    unreadable = done("b", VerifyOutcome.UNREADABLE, code="AccessDenied").answer
    assert dear is not None
    assert unreadable is not None
    tally.add(dear, accepted=True)
    tally.add(dear)
    tally.add(unreadable, 7, accepted=True)
    tally.add(ReadResult(Verified(key="c", outcome=VerifyOutcome.MISSING, listed=False)), 9, accepted=True)
    tally.add(ReadResult(Verified(key="d", outcome=VerifyOutcome.NEW), bytes_read=0, recorded=True), 8)
    assert tally == VerifyTally(
        listed=4,
        ledger_only=1,
        outcomes=Counter({"left_for_cost": 2, "unreadable": 1, "missing": 1, "new": 1}),
        unreadable=Counter({"AccessDenied": 1}),
        accepted=Counter({"left_for_cost": 1, "AccessDenied": 1}),
        left={"GLACIER_IR": (2, 10)},
        read_objects=1,
        recorded=1,
        late_objects=3,
        late_seconds=9,
    )
    assert tally.unread == {"AccessDenied": 1, "left_for_cost": 2}
