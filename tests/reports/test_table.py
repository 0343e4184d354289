"""The table on a terminal: all of the summary, in 100 columns, with nothing that moves the cursor."""

from __future__ import annotations

import pytest

from auditor.models import RuleUndecided, Severity
from auditor.reports.table import COLUMNS, render
from auditor.text import width
from tests.odd_keys import ODD_KEYS
from tests.reports.samples import denied, finding, judged, sample_summary, tally_of, target


def rows(text: str) -> dict[str, str]:
    """First line of each label."""
    return {line[:16].strip(): line[16:] for line in text.splitlines() if not line.startswith(" ")}


def test_quiet_run() -> None:
    shown = rows(render(sample_summary(tally_of(judged("a")))))
    assert shown["Audited"] == "s3://audited/"
    assert shown["Complete"] == "yes"
    assert shown["Coverage"] == "listed 1   audited 1   vanished 0   undecided 0   delete markers 0"
    assert shown["Holes"] == "none"
    assert shown["Hashing"] == "no ledger given"
    assert shown["Exit"].startswith("0: ")


def test_findings_holes_and_reasons() -> None:
    tally = tally_of(judged("a", finding("a"), finding("a", "O05", Severity.MEDIUM)), denied("b"))
    shown = rows(render(sample_summary(tally, rules_undecided=[RuleUndecided("B01", "GetBucketAcl", "AccessDenied")])))
    assert shown["Findings"] == "critical 0   high 1   medium 1   low 0   info 0"
    assert shown["By rule"] == "O02 1   O05 1"
    assert shown["Undecided"] == "GetObjectAcl AccessDenied 1"
    assert shown["Rules undecided"] == "B01: GetBucketAcl AccessDenied"
    assert shown["Holes"] == "1 object undecided"
    assert shown["Exit"].startswith("4: ")


def test_exit_follows_the_severity_that_fails() -> None:
    made = sample_summary(tally_of(judged("a", finding("a"))))
    assert rows(render(made, Severity.HIGH))["Exit"].startswith("3: ")
    assert rows(render(made, None))["Exit"].startswith("0: ")


def test_accepted_holes_are_said() -> None:
    tally = tally_of(denied("a"))
    tally.accept()
    shown = rows(render(sample_summary(tally)))
    assert shown["Accepted"] == "1 objects, 0 rules undecided"
    assert shown["Holes"] == "none"


def test_hashing_of_several_algorithms() -> None:
    tally = tally_of(judged("a"))
    tally.hash("queued")
    text = render(sample_summary(tally, algorithms=["sha256", "sha1", "md5"]))
    assert "Hashing sha256, sha1, md5\n" in text
    assert "known 0   hashed now 0   queued 1" in text


@pytest.mark.parametrize("key", [*ODD_KEYS.values(), "漢" * 300, "\x1b]0;title\x07"], ids=ascii)
def test_odd_words_move_nothing_and_fit(key: str) -> None:
    aim = target(prefix=key, start_after=key, stop_at=key)
    made = sample_summary(target=aim, rules_undecided=[RuleUndecided("B01", key, key)])
    made |= {"rules": {key: 1}, "unread": [{"action": key, "code": key, "count": 1}]}
    text = render(made)
    assert text.endswith("\n")
    for line in text.splitlines():
        assert line.isprintable()
        assert width(line) <= COLUMNS


def test_many_rules_are_cut_and_counted() -> None:
    made = sample_summary() | {"rules": {f"X{number:03}": 1 for number in range(40)}}
    text = render(made)
    assert "and 30 more" in text
    assert "X010" not in text


def test_long_folder_is_never_cut() -> None:
    out = "s3://bucket/" + "deep/" * 40
    assert out in render(sample_summary(out=out))
