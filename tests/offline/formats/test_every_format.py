"""One suite over every format: hostile text is inert for its consumer, holes and counts are there, memory stays."""

from __future__ import annotations

import tracemalloc
from collections import Counter

import pytest

from auditor.cli.help import make_parser
from auditor.model.access import Verdict
from auditor.model.finding import RuleUndecided
from auditor.model.rollup import RollUps
from auditor.model.summary import Summary
from auditor.offline.formats import FORMATS
from auditor.offline.formats.base import FormatOptions
from tests.offline.formats.consumers import CONSUMERS, Counts
from tests.support.samples.hostile import HOSTILE, HostileRun, hostile_run, refused
from tests.support.samples.reports import denied, finding, judged, rollups_of, sample_summary, tally_of, target

OPTIONS = FormatOptions(account="111122223333", region="eu-central-1")
EVERY = pytest.mark.parametrize("name", FORMATS)


@pytest.fixture(scope="module")
def hostile() -> tuple[Summary, HostileRun]:
    return hostile_run()


def written(name: str, summary: Summary, run: HostileRun) -> str:
    pieces = list(FORMATS[name](summary, run, OPTIONS))
    for piece in pieces:
        piece.encode()
    return "".join(pieces)


def test_the_suite_has_each_format_and_the_command_offers_it() -> None:
    assert list(CONSUMERS) == list(FORMATS)
    for name in FORMATS:
        assert make_parser().parse_args(["export", "run", "--format", name]).format == name


@EVERY
def test_hostile_text_is_inert_for_the_consumer(name: str, hostile: tuple[Summary, HostileRun]) -> None:
    assert CONSUMERS[name].faults(written(name, *hostile)) == []


@EVERY
def test_counts_are_the_summarys(name: str, hostile: tuple[Summary, HostileRun]) -> None:
    summary, run = hostile
    found = CONSUMERS[name].counts(written(name, summary, run))
    assert Counts(found.undecided, found.rules, dict(found.findings)) == Counts.of(summary)
    assert summary.coverage.undecided > 0 < len(summary.rules_undecided)


@EVERY
def test_undecided_objects_are_there_also_if_there_is_nothing_else(name: str) -> None:
    unseen = [denied("a"), denied("b")]
    assert CONSUMERS[name].counts(written(name, sample_summary(tally_of(*unseen)), HostileRun(unseen))).undecided == 2
    empty = CONSUMERS[name].counts(written(name, sample_summary(), HostileRun(())))
    assert (empty.undecided, empty.rules, Counter(empty.findings).total()) == (0, 0, 0)


class LongRun(HostileRun):
    """A run of so many objects, each exposed with a finding and undecided, whose roll-ups are of one."""

    def __init__(self, number: int) -> None:
        super().__init__([judged("k", finding("k"), verdict=Verdict.EXPOSED), denied("k")] * number)
        self._found = rollups_of(*self._judgements[:2])

    def rollups(self) -> RollUps:
        return self._found


def peak(name: str, run: LongRun) -> int:
    """The most bytes that the format holds while it writes a run."""
    tracemalloc.start()
    try:
        for piece in FORMATS[name](sample_summary(), run, OPTIONS):
            del piece
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@EVERY
def test_memory_does_not_grow_with_the_run(name: str) -> None:
    small, large = LongRun(10), LongRun(300)
    peak(name, large)  # imports, caches, buffers
    # The process's other threads only add to a peak: the smallest of several is the format's own.
    assert min(peak(name, large) for _ in range(2)) < peak(name, small) + 50_000


@EVERY
def test_hostile_prefix_and_codes_are_inert(name: str) -> None:
    failures: list[object] = []
    for text in HOSTILE[::5]:
        many = [denied("a"), refused("b", text), judged("c", finding("c"), verdict=Verdict.EXPOSED)]
        rule = RuleUndecided("B01", "GetBucketPolicy", text)
        aim = target(prefix=text, start_after=text, stop_at=text)
        made = sample_summary(tally_of(*many), target=aim, rules_undecided=(rule,), trust_unused=[text])
        if faults := CONSUMERS[name].faults(written(name, made, HostileRun(many))):
            failures.append((text, faults))
    assert not failures, failures


def test_the_suite_sees_a_fault() -> None:
    faulty = [
        ("table", "a\x1b[2J\n"),
        ("json", '{"a": "\u202e"}\n'),
        ("markdown", "[x](http://evil)"),
        ("markdown", "<b>x</b>"),
        ("markdown", "| a |\n|---|\n| `x` |\n"),
        ("markdown", "@everyone"),
        ("jsonl", "{}\n{\n"),
        ("csv", "kind\r\n=1\r\n"),
        ("ocsf", '{"class_uid":1}\n'),
        ("asff", '[{"Id":"a","Title":"a","Description":"a","GeneratorId":"a"}]'),
    ]
    assert [(name, text) for name, text in faulty if not CONSUMERS[name].faults(text)] == []
