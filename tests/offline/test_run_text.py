"""The closing screen: the verdict first, then the groups, the next command last, and nothing that moves the cursor."""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from msgspec.structs import replace

from auditor.model.access import Audience, AudienceKind, ObjectAccess, Verdict
from auditor.model.exception import Excepted, ExceptionEntry
from auditor.model.finding import Judgement, RuleUndecided, Severity
from auditor.model.rollup import FirstStep, RollUps
from auditor.model.summary import Resume, Summary, UnreadCount
from auditor.offline.formats.base import FormatOptions
from auditor.offline.run_text import LEAST, ROWS, render
from auditor.reports.summary import Alarm, alarm, completeness
from auditor.rules.exceptions import Exceptions
from auditor.text import visible, width
from tests.support.odd_keys import ODD_KEYS
from tests.support.samples.reports import (
    RUN,
    denied,
    finding,
    judged,
    rollups_of,
    sample_summary,
    tally_of,
    target,
)

COPIED = ("Report  ", "Run folder  ", "Next  ")
"""Lines that are never cut."""
DETAILS = ("Hashing", "Calls", "Kept", "Run", "Run folder", "Holes")
"""Labels that a run without a ledger and without a hole has under -v alone."""


def rows(text: str) -> dict[str, str]:
    """First line of each label."""
    return {line[:16].strip(): line[16:] for line in text.splitlines() if not line.startswith(" ")}


def table(
    made: Summary,
    fail_on: Severity | None = Severity.HIGH,
    *,
    rollups: RollUps | None = None,
    **options: Any,
) -> str:
    """The screen of a run. rollups: None for those of a run that found nothing."""
    return render(made, rollups or rollups_of(), FormatOptions(fail_on=fail_on, **options))


def test_quiet_run() -> None:
    made = sample_summary(tally_of(judged("a")))
    text = table(made)
    shown = rows(text)
    assert text.splitlines()[:3] == [
        "No object is open to strangers or to other accounts.",
        "1 object listed = 1 audited + 0 that could not be checked: complete",
        "",
    ]
    assert shown["Audited"] == "s3://audited/"
    assert shown["Exit"].startswith("0: ")
    assert "Next" not in shown
    assert shown.keys().isdisjoint(DETAILS)
    more = rows(table(made, verbose=True))
    assert more["Holes"] == "none"
    assert more["Hashing"] == "no ledger given"
    assert more["Run"] == f"{RUN}, engine boto3, 12.3 s"
    assert more["Run folder"] == made.out
    assert more.items() >= shown.items()


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


def exposed(key: str, rule: str = "O02", severity: Severity = Severity.HIGH) -> Judgement:
    access = ObjectAccess(Verdict.EXPOSED, (Audience(AudienceKind.ANYONE),))
    return replace(judged(key, finding(key, rule, severity)), access=access)


def partner(key: str) -> Judgement:
    return replace(judged(key), access=ObjectAccess(Verdict.SHARED, (Audience(AudienceKind.ACCOUNT, "4" * 12),)))


def test_groups_are_rows_the_worst_first() -> None:
    many = [*(exposed(f"site/{at}") for at in range(4)), exposed("b.sql", "O01", Severity.CRITICAL), partner("p/x")]
    lines = table(sample_summary(tally_of(*many)), rollups=rollups_of(*many), columns=70).splitlines()
    assert lines[:2] == [
        "Strangers can get at 5 objects.",
        "6 objects listed = 6 audited + 0 that could not be checked: complete",
    ]
    assert lines[3:16] == [
        "verdict  objects                                     keys",
        "exposed  Anyone on the internet can reach 4 objects  site/0",
        "                                                     site/1",
        "                                                     site/2",
        "                                                     site/3",
        "exposed  Anyone on the internet can reach 1 object   b.sql",
        "shared   Account 444444444444 can reach 1 object     p/x",
        "",
        "severity  rule  finding                                     keys",
        "critical  O01   The ACL lets anyone on the internet         b.sql",
        "                change the object's ACL: 1 object",
        "high      O02   The ACL lets anyone on the internet read    site/0 + 3",
        "                4 objects",
    ]


def test_twelve_rows_and_how_many_more() -> None:
    many = [exposed(f"X{at // 4:02}/{at:03}", f"X{at // 4:02}") for at in range(120)]
    text = table(sample_summary(tally_of(*many)), rollups=rollups_of(*many))
    shown = [line for line in text.splitlines() if line.startswith(("exposed ", "high "))]
    assert len(shown) == ROWS
    assert "\nand 96 further objects in the report\n" in text
    assert "\nand 96 further findings in the report\n" in text


def test_marks_are_coloured_by_how_bad_they_are() -> None:
    many = [exposed("a", "O01", Severity.CRITICAL), exposed("b"), partner("c"), exposed("d", "K01", Severity.LOW)]
    made, found = sample_summary(tally_of(*many)), rollups_of(*many)
    text = table(made, rollups=found, colour=True)
    for mark, code in (("exposed", "1;31"), ("shared", "33"), ("critical", "1;31"), ("high", "31")):
        assert f"\n\x1b[{code}m{mark}\x1b[0m  " in text
    assert "\nlow  " in text
    assert re.sub(r"\x1b\[[0-9;]*m", "", text) == table(made, rollups=found)


STEP = FirstStep(change="turn ACLs off", closes=1, of=1, how="--acls-off")


@pytest.mark.parametrize(
    ("steps", "many", "command"),
    [
        ([STEP], [exposed("a")], "auditor what-if '/my runs/x' --acls-off"),
        ([replace(STEP, how=None)], [exposed("a")], "auditor fix-kit '/my runs/x' --out kit"),
        ([replace(STEP, how=None, decides=1)], [denied("a")], "auditor policy s3://audited"),
        ([], [exposed("-rf *"), exposed("it's")], """auditor explain 's3://audited/it'"'"'s' --run '/my runs/x'"""),
        ([], [partner("\x1b[2J"), partner("b")], "auditor explain s3://audited/b --run '/my runs/x'"),
        ([], [exposed("\x1b[2J")], r"auditor explain $'s3://audited/\x1b[2J' --run '/my runs/x'"),
        ([], [judged("a", finding("a", "K01", Severity.LOW))], "auditor rules K01"),
        ([], [judged("a")], None),
    ],
)
def test_the_next_command_is_whole(steps: list[FirstStep], many: list[Judgement], command: str | None) -> None:
    rollups = replace(rollups_of(*many), first=tuple(steps))
    made = sample_summary(tally_of(*many))
    assert rows(table(made, rollups=rollups, folder="/my runs/x")).get("Next") == command
    stopped = replace(made, resume=Resume(RUN, None, "Ctrl-C"))
    assert "Next" not in rows(table(stopped, rollups=rollups))


def test_odd_words_move_nothing_and_fit() -> None:
    failures: list[object] = []
    for key in [*ODD_KEYS.values(), "漢" * 300, "\x1b]0;title\x07"]:
        aim = target(prefix=key, start_after=key, stop_at=key)
        made = sample_summary(target=aim, rules_undecided=[RuleUndecided("B01", key, key)], trust_unused=[key])
        made = replace(made, rules={key: 1}, unread=(UnreadCount(key, key, 1),))
        bad = judged(key, finding(key), verdict=Verdict.EXPOSED)
        found = rollups_of(bad, denied(key))
        for columns in (80, 200, LEAST):
            lines = table(made, columns=columns, rollups=found, verbose=True).splitlines()
            failures += [(key, columns, line) for line in lines if not line.isprintable()]
            failures += [(key, line) for line in lines if width(line) > columns and not line.startswith(COPIED)]
    assert not failures, failures


def test_no_path_breaks_out_of_its_link() -> None:
    for name in ("plain", "\x1b]8;;https:evil.example\x1b\\x", "a b;\x07\n%2F", "漢\udce9"):
        text = table(sample_summary(), folder=f"/runs/{name}", links=True)
        (line,) = (line for line in text.splitlines() if line.startswith("Report "))
        ((uri, shown),) = re.findall(r"\AReport +\x1b\]8;;([!-~]+)\x1b\\([^\x00-\x1f]+)\x1b\]8;;\x1b\\\Z", line)
        assert os.fsdecode(unquote_to_bytes(uri)) == f"file:///runs/{name}/report.html"
        assert shown == f"/runs/{visible(name)}/report.html"
        assert text.count("\x1b") == 4
    assert "\x1b" not in table(sample_summary(), folder="s3://reports/x", links=True)


def test_a_run_that_did_not_look_at_everything_is_never_green() -> None:
    tally = tally_of(denied("a"))
    tally.accept()
    for made in (
        sample_summary(tally),
        sample_summary(complete=False),
        sample_summary(tally_of(judged("a")), rules_undecided=[RuleUndecided("B01", "GetBucketAcl", "AccessDenied")]),
    ):
        assert alarm(made) is Alarm.DOUBT
        assert completeness(made) == ("listing complete" if made.complete else "NOT COMPLETE")
