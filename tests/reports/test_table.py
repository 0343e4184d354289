"""The table on a terminal: the verdict first, then the groups, with nothing that moves the cursor."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from auditor.model.access import Audience, AudienceKind, ObjectAccess, Verdict
from auditor.model.exception import Excepted, ExceptionEntry
from auditor.model.finding import Judgement, RuleUndecided, Severity
from auditor.model.rollup import RollUps, Sample
from auditor.model.summary import Summary, UnreadCount
from auditor.reports.page.build import page_data
from auditor.reports.table import COLUMNS, LEAST, render
from auditor.reports.table_groups import ROWS
from auditor.reports.verdict_sentence import Alarm, alarm, verdict_sentence
from auditor.rules.exceptions import Exceptions
from auditor.text import width
from tests.support.odd_keys import ODD_KEYS
from tests.support.samples.reports import (
    denied,
    finding,
    judged,
    page_source,
    rollups_of,
    sample_summary,
    tally_of,
    target,
)

COPIED = ("Report  ", "Run folder  ")
"""Lines that are never cut."""


def rows(text: str) -> dict[str, str]:
    """First line of each label."""
    return {line[:16].strip(): line[16:] for line in text.splitlines() if not line.startswith(" ")}


def table(
    made: Summary,
    fail_on: Severity | None = Severity.HIGH,
    *,
    rollups: RollUps | None = None,
    columns: int = COLUMNS,
    colour: bool = False,
) -> str:
    """The table of a run. rollups: None for those of a run that found nothing."""
    return render(made, fail_on, columns, rollups=rollups or rollups_of(), colour=colour)


def test_quiet_run() -> None:
    text = table(sample_summary(tally_of(judged("a"))))
    shown = rows(text)
    assert text.splitlines()[:3] == [
        "No object is open to strangers or to other accounts.",
        "1 listed = 1 audited + 0 undecided: complete",
        "",
    ]
    assert shown["Audited"] == "s3://audited/"
    assert shown["Holes"] == "none"
    assert shown["Hashing"] == "no ledger given"
    assert shown["Exit"].startswith("0: ")


def test_trust_that_trusted_nothing_is_told() -> None:
    assert rows(table(sample_summary(trust_unused=["o-1\x1b"])))["Trusted in vain"] == "o-1\\x1b"


def test_findings_holes_and_reasons() -> None:
    many = (judged("a", finding("a"), finding("a", "O05", Severity.MEDIUM)), denied("b"))
    made = sample_summary(tally_of(*many), rules_undecided=[RuleUndecided("B01", "GetBucketAcl", "AccessDenied")])
    shown = rows(table(made, rollups=rollups_of(*many)))
    assert shown["Findings"] == "critical 0   high 1   medium 1   low 0   info 0"
    assert shown["Undecided"] == "1 object: GetObjectAcl AccessDenied, b"
    assert shown["Rules undecided"] == "B01: GetBucketAcl AccessDenied"
    assert shown["Holes"] == "1 object undecided; 1 rule undecided"
    assert shown["Exit"].startswith("4: ")


def test_exceptions_and_what_they_cover() -> None:
    tally = tally_of(judged("a", finding("a"), verdict=Verdict.EXPOSED))
    tally.except_(Excepted("site", ("site",)), judged("a", finding("a"), verdict=Verdict.EXPOSED))
    entries = [
        ExceptionEntry("r", "o", "2026-01-01", rule="O02", id="old"),
        ExceptionEntry("r", "o", "2026-12-31", verdict=Verdict.EXPOSED, prefix="site/\x1b", id="site"),
        ExceptionEntry("r", "o", "2026-12-31", rule="O04", prefix="in\nvain", id="vain"),
    ]
    states = Exceptions(entries, "audited", "2026-01-02").states(
        {"old": 7, "site": 1, "vain": 0}.__getitem__, lambda name: 0
    )
    made = sample_summary(tally, exceptions=states)
    shown = rows(table(made))
    assert shown["By intent"] == "1 exposed, 1 high finding"
    assert shown["Exceptions"] == "old (O02) expired on 2026-01-01: 7 count again"
    assert "vain (O04 in\\nvain) is unused: nothing matches it" in table(made)
    assert shown["Exit"].startswith("0: ")


def test_exit_follows_the_severity_that_fails() -> None:
    made = sample_summary(tally_of(judged("a", finding("a"))))
    assert rows(table(made, Severity.HIGH))["Exit"].startswith("3: ")
    assert rows(table(made, None))["Exit"].startswith("0: ")


def test_accepted_holes_are_said() -> None:
    tally = tally_of(denied("a"))
    tally.accept()
    shown = rows(table(sample_summary(tally)))
    assert shown["Accepted"] == "1 object undecided"
    assert shown["Holes"] == "none"


def test_hashing_of_several_algorithms() -> None:
    tally = tally_of(judged("a"))
    tally.hash("queued")
    text = table(sample_summary(tally, algorithms=["sha256", "sha1", "md5"]))
    assert "Hashing sha256, sha1, md5\n" in text
    assert "known 0   hashed now 0   queued 1" in text


@pytest.mark.parametrize("columns", [COLUMNS, 80, 200, LEAST])
@pytest.mark.parametrize("key", [*ODD_KEYS.values(), "漢" * 300, "\x1b]0;title\x07"], ids=ascii)
def test_odd_words_move_nothing_and_fit(key: str, columns: int) -> None:
    aim = target(prefix=key, start_after=key, stop_at=key)
    made = sample_summary(target=aim, rules_undecided=[RuleUndecided("B01", key, key)])
    made = replace(made, rules={key: 1}, unread=(UnreadCount(key, key, 1),))
    bad = judged(key, finding(key), verdict=Verdict.EXPOSED)
    text = table(made, columns=columns, rollups=rollups_of(bad, denied(key)))
    assert text[-1:] == "\n"
    for line in text.splitlines():
        assert line.isprintable()
        assert width(line) <= columns or line.startswith(COPIED)


def block(text: str, label: str) -> list[str]:
    """All lines of a label."""
    lines = iter(text.splitlines())
    found = [line for line in lines if line[:16].strip() == label][:1]
    rest = text.partition(found[0] + "\n")[2].splitlines() if found else []
    more = next((at for at, line in enumerate(rest) if not line.startswith(" ")), len(rest))
    return [line[16:] for line in (*found, *rest[:more])]


def test_only_what_is_particular_to_this_run_is_said_of_what_was_not_looked_at() -> None:
    text = table(sample_summary())
    assert block(text, "Not looked at") == [
        "versions other than the current one (--versions audits them)",
        "the bucket's own settings",
        "and what no run looks at: summary.json, not_looked_at",
    ]


def test_holes_say_how_a_known_one_is_accepted() -> None:
    assert "[[exceptions]] in auditor.toml" in table(sample_summary(tally_of(denied("a"))))
    for whole in (sample_summary(tally_of(judged("a"))), sample_summary(complete=False)):
        assert "[[exceptions]]" not in table(whole)


@pytest.mark.parametrize(
    ("fail_on", "words"),
    [(Severity.MEDIUM, "3: findings at or above medium"), (None, "0: complete, no hole; --fail-on is never")],
)
def test_exit_names_the_severity(fail_on: Severity | None, words: str) -> None:
    assert rows(table(sample_summary(tally_of(judged("a", finding("a")))), fail_on))["Exit"] == words


def test_report_is_named_beside_its_folder() -> None:
    shown = rows(table(sample_summary(out="runs/x")))
    assert (shown["Report"], shown["Run folder"]) == ("runs/x/report.html", "runs/x")


def test_words_stay_whole_at_eighty_columns() -> None:
    made = sample_summary(
        tally_of(denied("a")),
        target=target(start_after="m"),
        rules_undecided=[RuleUndecided("B01", "GetBucketOwnershipControls", "AccessDenied")],
    )
    wide = set(table(made, columns=100).split())
    narrow = table(made, columns=80)
    assert set(narrow.split()) == wide
    assert all(width(line) <= 80 or line.startswith(COPIED) for line in narrow.splitlines())


def test_long_folder_is_never_cut() -> None:
    out = "s3://bucket/" + "deep/" * 40
    assert out in table(sample_summary(out=out))


def groups(text: str) -> list[list[str]]:
    """The cells of the two tables of groups."""
    tables = text.split("\n\n")[1:-1]
    return [line.split(maxsplit=4) for table in tables for line in table.splitlines()]


def exposed(key: str, rule: str = "O02", severity: Severity = Severity.HIGH) -> Judgement:
    access = ObjectAccess(Verdict.EXPOSED, (Audience(AudienceKind.ANYONE),))
    return replace(judged(key, finding(key, rule, severity)), access=access)


def partner(key: str) -> Judgement:
    return replace(judged(key), access=ObjectAccess(Verdict.SHARED, (Audience(AudienceKind.ACCOUNT, "4" * 12),)))


def test_groups_are_rows_the_worst_first() -> None:
    many = [*(exposed(f"site/{at}") for at in range(3)), exposed("b.sql", "O01", Severity.CRITICAL), partner("p/x")]
    lines = table(sample_summary(tally_of(*many)), rollups=rollups_of(*many), columns=70).splitlines()
    assert lines[:2] == ["Strangers can get at 4 objects.", "5 listed = 5 audited + 0 undecided: complete"]
    assert lines[3:11] == [
        "verdict        objects  audience                keys",
        "exposed              3  anyone on the internet  site/",
        "exposed              1  anyone on the internet  b.sql",
        "shared               1  account 444444444444    p/x",
        "",
        "finding         number  audience                keys",
        "critical  O01        1  anyone on the internet  b.sql",
        "high      O02        3  anyone on the internet  site/",
    ]


def test_new_ones_are_counted_where_they_are_known() -> None:
    many = [exposed(f"site/{at}") for at in range(3)]
    text = table(sample_summary(tally_of(*many)), rollups=rollups_of(*many, new=True), columns=70)
    assert ["exposed", "3", "3", "anyone", "on the internet  site/"] in groups(text)
    assert "  new  " not in table(sample_summary(tally_of(*many)), rollups=rollups_of(*many))


def test_twelve_rows_and_how_many_groups_more() -> None:
    many = [exposed(f"X{at // 2:02}/{at}", f"X{at // 2:02}") for at in range(60)]
    text = table(sample_summary(tally_of(*many)), rollups=rollups_of(*many))
    shown = [line for line in groups(text) if line and line[0] in {"exposed", "high"}]
    assert len(shown) == ROWS
    assert "\nand 24 more groups of 48 objects\n" in text
    assert "\nand 24 more groups of 48 findings\n" in text
    assert block(text, "First exposed") == ["X00/0", "X00/1", "X01/2", "X01/3", "X02/4", "and 55 more"]


def test_a_rule_is_named_where_there_is_room() -> None:
    made, groups_ = sample_summary(tally_of(exposed("a"))), rollups_of(exposed("a"))
    assert "high      O02 acl-everyone-read" in table(made, rollups=groups_)
    assert "acl-everyone-read" not in table(made, rollups=groups_, columns=LEAST)


def test_undecided_groups_are_named_with_their_keys() -> None:
    many = [denied(f"vault/{at}") for at in range(3)]
    text = table(sample_summary(tally_of(*many)), rollups=rollups_of(*many))
    assert text.splitlines()[1] == "3 listed = 0 audited + 3 undecided: listing complete"
    assert block(text, "Undecided") == ["3 objects: GetObjectAcl AccessDenied, vault/"]


def test_what_exceptions_cover_comes_last_and_is_called_intended() -> None:
    found = rollups_of(exposed("x/b"))
    site = [replace(group, excepted=1, samples=(Sample("site/a"),)) for group in found.groups]
    text = table(sample_summary(tally_of(exposed("x/b"))), rollups=replace(found, groups=(*site, *found.groups)))
    assert [line[0] for line in groups(text) if line][:3] == ["verdict", "exposed", "by"]
    assert "anyone on the internet (1 by intent)" in text


@pytest.mark.parametrize(
    ("judgement", "code"),
    [(exposed("a"), "31"), (partner("a"), "33"), (denied("a"), "33"), (judged("a"), "32")],
    ids=["exposed", "shared", "undecided", "private"],
)
def test_the_verdict_alone_is_coloured(judgement: Judgement, code: str) -> None:
    made = sample_summary(tally_of(judgement))
    first, *others = table(made, colour=True).splitlines()
    assert first == f"\x1b[1;{code}m{verdict_sentence(made)}\x1b[0m"
    assert "\x1b" not in "".join(others)
    assert "\x1b" not in table(made)


def test_a_run_that_did_not_look_at_everything_is_never_green() -> None:
    tally = tally_of(denied("a"))
    tally.accept()
    for made in (
        sample_summary(tally),
        sample_summary(complete=False),
        sample_summary(tally_of(judged("a")), rules_undecided=[RuleUndecided("B01", "GetBucketAcl", "AccessDenied")]),
    ):
        assert alarm(made) is Alarm.DOUBT


def test_the_page_and_the_table_say_one_sentence() -> None:
    for made in (sample_summary(), sample_summary(tally_of(exposed("a"), partner("b")), complete=False)):
        page = page_data(page_source(made))
        before, after = page.headline.title
        assert f"{before}{page.headline.emphasis}{after}" == table(made).splitlines()[0]
