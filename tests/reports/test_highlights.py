"""What the reports name is bounded, and is the worst there is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auditor.model.access import Verdict
from auditor.model.finding import Severity
from auditor.model.object import ALL_USERS
from auditor.model.run_lines import FindingLine
from auditor.reports.highlights import EXPOSED, UNDECIDED, ExposedObject, Highlights, WorstFindings, masked
from auditor.reports.lines import finding_line, object_line
from auditor.runs.reading import RunReader
from auditor.runs.stores.local import LocalStore
from tests.support.samples.reports import OWNER, RUN, denied, finding, judged, shown_of


def collected(limit: int, *lines: FindingLine) -> WorstFindings:
    worst = WorstFindings(limit)
    for line in lines:
        worst.add(line)
    return worst


def test_worst_findings_first_then_by_key() -> None:
    given = [
        ("b", Severity.LOW),
        ("a", Severity.HIGH),
        ("c", Severity.CRITICAL),
        (None, Severity.HIGH),
        ("a", Severity.INFO),
    ]
    worst = collected(4, *(finding_line(finding(key, severity=severity)) for key, severity in given))
    assert [(line.key, line.severity) for line in worst.lines()] == [
        ("c", "critical"), (None, "high"), ("a", "high"), ("b", "low"),
    ]  # fmt: skip
    assert worst.more == 1


def test_few_worst_of_very_many() -> None:
    order = list(Severity)
    lines = [finding_line(finding(f"{n * 7919 % 5000:05}", severity=order[n % 5])) for n in range(5000)]
    worst = collected(300, *lines)
    expected = sorted(lines, key=lambda line: (order.index(line.severity), line.key or ""))[:300]
    assert worst.lines() == expected
    assert worst.more == 4700


def test_equal_findings_are_all_kept() -> None:
    line = finding_line(finding("same"))
    assert collected(3, line, replace(line), replace(line), replace(line)).lines() == [line] * 3


def test_lines_that_are_not_kept_need_no_reading() -> None:
    severities = list(Severity)
    lines = [
        finding_line(finding(f"{n:05}", ("O02", "E01")[n * 31 % 2], severity=severities[n * 7919 % 5]))
        for n in range(3000)
    ]
    quick, read = WorstFindings(100), 0
    for line in lines:
        if quick.keeps(line.severity, line.rule):
            quick.add(line)
            read += 1
        else:
            quick.count()
    assert (quick.lines(), quick.more) == ((every := collected(100, *lines)).lines(), every.more)
    assert read < 100 * 2 * len(severities)
    assert not WorstFindings(0).keeps(Severity.HIGH, "O02")


def test_no_room_at_all() -> None:
    assert collected(0, finding_line(finding("a"))).more == 1


def test_of_equal_severity_what_opens_comes_before_the_rest() -> None:
    lines = [finding_line(finding(f"a{number}", "E01")) for number in range(3)]
    lines += [finding_line(finding("z", "O02")), finding_line(finding(None, "B03"))]
    assert [line.rule for line in collected(3, *lines).lines()] == ["B03", "O02", "E01"]


def test_exposed_object_without_a_finding_is_named() -> None:
    shown = shown_of(judged("a"), judged("b", verdict=Verdict.EXPOSED))
    assert shown.exposed == [ExposedObject("b", None, ())]


def test_only_the_first_ones_are_kept() -> None:
    shown = shown_of(
        *(judged(f"{number:04}", verdict=Verdict.EXPOSED) for number in range(EXPOSED + 5)),
        *(denied(f"x{number:04}") for number in range(UNDECIDED + 5)),
    )
    assert [line.key for line in shown.exposed] == [f"{number:04}" for number in range(EXPOSED)]
    assert len(shown.undecided) == UNDECIDED


def test_read_back_no_further_than_needed(tmp_path: Path) -> None:
    taken = []

    class Run(RunReader):
        def lines(self, kind: str) -> Iterator[dict[str, Any]]:
            for number in range(9) if kind == "objects" else ():
                taken.append(number)
                verdict = Verdict.EXPOSED if number in {2, 4} else Verdict.PRIVATE
                yield object_line(judged(f"k{number}", verdict=verdict), None)

    run = Run(LocalStore(tmp_path), "audited", RUN)
    assert [line.key for line in Highlights.read(run, 2).exposed] == ["k2", "k4"]
    assert taken == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("rule", "grantee", "verdict", "expected"),
    [
        ("O02", ALL_USERS, Verdict.MASKED, True),
        ("O02", ALL_USERS, Verdict.SHARED, True),  # another grant shares it, this one is masked
        ("O02", ALL_USERS, Verdict.EXPOSED, False),
        ("O02", ALL_USERS, Verdict.UNKNOWN, False),
        ("O07", OWNER, Verdict.MASKED, True),
        ("O07", OWNER, Verdict.SHARED, False),
        ("E01", None, Verdict.MASKED, False),
        ("B03", ALL_USERS, None, False),
    ],
)
def test_masked_grants(rule: str, grantee: str | None, verdict: Verdict | None, expected: bool) -> None:
    line = replace(finding_line(finding("k", rule), verdict), grantee=grantee)
    assert masked(line) is expected
