"""The table on a terminal: all of the summary, in 100 columns, with nothing that moves the cursor."""

from __future__ import annotations

from dataclasses import replace

import pytest

from auditor.model.access import Audience, AudienceKind, ObjectAccess, Verdict
from auditor.model.exception import Excepted, ExceptionEntry
from auditor.model.finding import RuleUndecided, Severity
from auditor.model.summary import UnreadCount
from auditor.reports.table import COLUMNS, LEAST, render
from auditor.rules.exceptions import Exceptions
from auditor.text import width
from tests.support.odd_keys import ODD_KEYS
from tests.support.samples.reports import denied, finding, judged, sample_summary, shown_of, tally_of, target

COPIED = ("Report  ", "Run folder  ")
"""Lines that are never cut."""


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


def test_audiences_with_the_verdict_of_their_objects() -> None:
    anyone, partner = Audience(AudienceKind.ANYONE), Audience(AudienceKind.ACCOUNT, "4" * 12)
    tally = tally_of(
        replace(judged("a"), access=ObjectAccess(Verdict.EXPOSED, (anyone,))),
        replace(judged("b"), access=ObjectAccess(Verdict.SHARED, (partner,))),
    )
    shown = rows(render(sample_summary(tally, trust_unused=["o-1\x1b"])))
    assert shown["Open to"] == "anyone (exposed) 1   account 444444444444 (shared) 1"
    assert shown["Trusted in vain"] == "o-1\\x1b"


def test_findings_holes_and_reasons() -> None:
    tally = tally_of(judged("a", finding("a"), finding("a", "O05", Severity.MEDIUM)), denied("b"))
    shown = rows(render(sample_summary(tally, rules_undecided=[RuleUndecided("B01", "GetBucketAcl", "AccessDenied")])))
    assert shown["Findings"] == "critical 0   high 1   medium 1   low 0   info 0"
    assert shown["By rule"] == "O02 1   O05 1"
    assert shown["Undecided"] == "GetObjectAcl AccessDenied 1"
    assert shown["Rules undecided"] == "B01: GetBucketAcl AccessDenied"
    assert shown["Holes"] == "1 object undecided; 1 rule undecided"
    assert shown["Exit"].startswith("4: ")


def test_exceptions_and_what_they_cover() -> None:
    tally = tally_of(judged("a", finding("a"), verdict=Verdict.EXPOSED))
    tally.except_(Excepted("site", ("site",)), judged("a", finding("a"), verdict=Verdict.EXPOSED))
    entries = [
        ExceptionEntry("r", rule="O02", until="2026-01-01", id="old"),
        ExceptionEntry("r", verdict=Verdict.EXPOSED, prefix="site/\x1b", id="site"),
        ExceptionEntry("r", rule="O04", prefix="in\nvain", id="vain"),
    ]
    states = Exceptions(entries, "audited", "2026-01-02").states(
        {"old": 7, "site": 1, "vain": 0}.__getitem__, lambda name: 0
    )
    made = sample_summary(tally, exceptions=states)
    shown = rows(render(made))
    assert shown["By intent"] == "1 exposed, 1 high finding"
    assert shown["Exceptions"] == "old (O02) expired on 2026-01-01: 7 count again"
    assert "vain (O04 in\\nvain) is unused: nothing matches it" in render(made)
    assert shown["Exit"].startswith("0: ")


def test_exit_follows_the_severity_that_fails() -> None:
    made = sample_summary(tally_of(judged("a", finding("a"))))
    assert rows(render(made, Severity.HIGH))["Exit"].startswith("3: ")
    assert rows(render(made, None))["Exit"].startswith("0: ")


def test_accepted_holes_are_said() -> None:
    tally = tally_of(denied("a"))
    tally.accept()
    shown = rows(render(sample_summary(tally)))
    assert shown["Accepted"] == "1 object undecided"
    assert shown["Holes"] == "none"


def test_hashing_of_several_algorithms() -> None:
    tally = tally_of(judged("a"))
    tally.hash("queued")
    text = render(sample_summary(tally, algorithms=["sha256", "sha1", "md5"]))
    assert "Hashing sha256, sha1, md5\n" in text
    assert "known 0   hashed now 0   queued 1" in text


@pytest.mark.parametrize("columns", [COLUMNS, 80, 200, LEAST])
@pytest.mark.parametrize("key", [*ODD_KEYS.values(), "漢" * 300, "\x1b]0;title\x07"], ids=ascii)
def test_odd_words_move_nothing_and_fit(key: str, columns: int) -> None:
    aim = target(prefix=key, start_after=key, stop_at=key)
    made = sample_summary(target=aim, rules_undecided=[RuleUndecided("B01", key, key)])
    made = replace(made, rules={key: 1}, unread=(UnreadCount(key, key, 1),))
    bad = judged(key, finding(key), verdict=Verdict.EXPOSED)
    text = render(made, shown=shown_of(bad), columns=columns)
    assert text.endswith("\n")
    for line in text.splitlines():
        assert line.isprintable()
        assert width(line) <= min(columns, COLUMNS) or line.startswith(COPIED)


def block(text: str, label: str) -> list[str]:
    """All lines of a label."""
    lines = iter(text.splitlines())
    found = [line for line in lines if line[:16].strip() == label][:1]
    rest = text.partition(found[0] + "\n")[2].splitlines() if found else []
    more = next((at for at, line in enumerate(rest) if not line.startswith(" ")), len(rest))
    return [line[16:] for line in (*found, *rest[:more])]


def test_worst_findings_are_named_with_the_verdict_of_their_object() -> None:
    bad = judged("a\x1b", finding("a\x1b", "O01", Severity.CRITICAL), verdict=Verdict.EXPOSED)
    hidden = judged("b" * 200, finding("b" * 200), verdict=Verdict.MASKED)
    text = render(sample_summary(tally_of(bad, hidden)), shown=shown_of(bad, hidden), columns=80)
    first, second = block(text, "Worst")
    assert first == "critical  O01  exposed  a\\x1b"
    assert second.startswith("high      O02  masked   bbbb")
    assert second.endswith("b…")


def test_ten_worst_and_five_exposed_then_how_many_more() -> None:
    many = [judged(f"k{number:03}", finding(f"k{number:03}"), verdict=Verdict.EXPOSED) for number in range(12)]
    text = render(sample_summary(tally_of(*many)), shown=shown_of(*many))
    assert block(text, "Exposed") == [*(f"k{number:03}" for number in range(5)), "and 7 more"]
    assert len(block(text, "Worst")) == 11
    assert block(text, "Worst")[-1] == "and 2 more"


def test_nothing_found_has_no_such_sections() -> None:
    text = render(sample_summary(tally_of(judged("a"))), shown=shown_of(judged("a")))
    assert block(text, "Exposed") == block(text, "Worst") == []


def test_only_what_is_particular_to_this_run_is_said_of_what_was_not_looked_at() -> None:
    text = render(sample_summary())
    assert block(text, "Not looked at") == [
        "versions other than the current one (--versions looks at them)",
        "the bucket's own settings",
        "and what no run looks at: summary.json, not_looked_at",
    ]


def test_holes_say_how_a_known_one_is_accepted() -> None:
    assert "[[exceptions]] in auditor.toml" in render(sample_summary(tally_of(denied("a"))))
    for whole in (sample_summary(tally_of(judged("a"))), sample_summary(complete=False)):
        assert "[[exceptions]]" not in render(whole)


@pytest.mark.parametrize(
    ("fail_on", "words"),
    [(Severity.MEDIUM, "3: findings at or above medium"), (None, "0: complete, no hole; --fail-on is never")],
)
def test_exit_names_the_severity(fail_on: Severity | None, words: str) -> None:
    assert rows(render(sample_summary(tally_of(judged("a", finding("a")))), fail_on))["Exit"] == words


def test_report_is_named_beside_its_folder() -> None:
    shown = rows(render(sample_summary(out="runs/x")))
    assert (shown["Report"], shown["Run folder"]) == ("runs/x/report.html", "runs/x")


def test_words_stay_whole_at_eighty_columns() -> None:
    made = sample_summary(
        tally_of(denied("a")),
        target=target(start_after="m"),
        rules_undecided=[RuleUndecided("B01", "GetBucketOwnershipControls", "AccessDenied")],
    )
    wide = set(render(made, columns=100).split())
    narrow = render(made, columns=80)
    assert set(narrow.split()) == wide
    assert all(width(line) <= 80 or line.startswith(COPIED) for line in narrow.splitlines())


def test_many_rules_are_cut_and_counted() -> None:
    made = replace(sample_summary(), rules={f"X{number:03}": 1 for number in range(40)})
    text = render(made)
    assert "and 30 more" in text
    assert "X010" not in text


def test_long_folder_is_never_cut() -> None:
    out = "s3://bucket/" + "deep/" * 40
    assert out in render(sample_summary(out=out))
