"""One suite over every format: hostile text is inert for its consumer, holes and counts are there, memory stays."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeVar

import pytest

from auditor.cli.help import make_parser
from auditor.model.access import Verdict
from auditor.model.finding import RuleUndecided
from auditor.model.rollup import RollUps
from auditor.model.run_lines import FindingLine, ObjectLine, UndecidedLine
from auditor.model.summary import Summary
from auditor.reports.formats import FORMATS
from auditor.reports.formats.base import FormatOptions
from tests.reports.formats.consumers import CONSUMERS, Counts
from tests.support.samples.hostile import HOSTILE, HostileRun, hostile_run, refused
from tests.support.samples.reports import denied, finding, judged, rollups_of, sample_summary, tally_of, target

OPTIONS = FormatOptions(account="111122223333", region="eu-central-1")
L = TypeVar("L")
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


class LongRun:
    """A run of many objects, each exposed with a finding and undecided, whose lines are made while they are read."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._one = HostileRun([judged("k", finding("k"), verdict=Verdict.EXPOSED), denied("k")])
        self._rollups = rollups_of(judged("k", finding("k"), verdict=Verdict.EXPOSED), denied("k"))

    def objects(self) -> Iterator[ObjectLine]:
        return self._each(self._one.objects())

    def findings(self) -> Iterator[FindingLine]:
        return self._each(self._one.findings())

    def undecided(self) -> Iterator[UndecidedLine]:
        return self._each(self._one.undecided())

    def rollups(self) -> RollUps:
        return self._rollups

    def _each(self, lines: Iterable[L]) -> Iterator[L]:
        one = next(iter(lines))
        for _ in range(self._number):
            yield one


def write_long(name: str, number: int) -> None:
    for piece in FORMATS[name](sample_summary(), LongRun(number), OPTIONS):
        del piece


def peak(name: str, number: int) -> int:
    """The most bytes that the format holds while it writes a run of so many objects."""
    tracemalloc.start()
    try:
        write_long(name, number)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@EVERY
def test_memory_does_not_grow_with_the_run(name: str) -> None:
    write_long(name, 600)  # imports, caches, buffers
    # The process's other threads only add to a peak: the smallest of several is the format's own.
    assert min(peak(name, 600) for _ in range(2)) < peak(name, 20) + 50_000


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
