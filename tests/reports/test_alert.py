"""Which nights are an alert, its words, its size, and hostile names in it, as plain text and for a chat."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from auditor.aws.publish import MOST_BYTES as MOST_EVENT
from auditor.model.access import Verdict
from auditor.model.alert import failure_alert
from auditor.model.exception import ExceptionState, ExceptionUse
from auditor.model.finding import FailOn, RuleUndecided, Severity
from auditor.model.rollup import Group, GroupKind, RollUps
from auditor.model.summary import AcceptedHoles, Cause, Changes, ExceptedCounts, Resume, Summary, UnreadCount
from auditor.reports.alert import GROUPS, alert_of, event_of
from auditor.reports.channel_texts import MOST_BYTES, MOST_DESCRIPTION, MOST_TITLE, chat_message, subject_of, text_of
from auditor.reports.rollup import totals_of
from tests.support.samples.pages import group_of
from tests.support.samples.reports import RUN, denied, finding, judged, sample_summary, tally_of, target

LAST: Final = "20260101T030405Z-0a1b2c"
HIGH: Final = Severity.HIGH


def night(*objects: Any, changes: Changes | None = None, **more: Any) -> Summary:
    """The summary of a night that was compared with the last one: by default nothing has changed."""
    found = sample_summary(tally_of(*objects), **{name: more.pop(name) for name in [*more] if name != "accepted"})
    return replace(found, changes=changes or Changes(against=LAST), **more)


def changed(**kinds: Any) -> Changes:
    return Changes(against=LAST, **kinds)


def expired(until: str) -> dict[str, Any]:
    return {"exceptions": [ExceptionUse("e1", "O02", None, None, "web", "r", until, ExceptionState.EXPIRED, 4)]}


LOST: Final = RuleUndecided("B01", "GetBucketAcl", "AccessDenied")
OPEN: Final = judged("a", finding("a"), verdict=Verdict.EXPOSED)
SHUT: Final = denied("b")
CASES: Final[dict[str, tuple[Summary, Any, str | None]]] = {
    "quiet": (night(), HIGH, None),
    "known findings": (night(OPEN), HIGH, None),
    "known findings, new ones asked for": (night(OPEN), FailOn(HIGH, new=True), None),
    "a first run": (sample_summary(tally_of(OPEN)), HIGH, "1 object exposed; 1 finding (1 high)"),
    "a first run that found nothing": (sample_summary(tally_of(judged("a"))), HIGH, None),
    "a first run, all of it excepted": (
        replace(sample_summary(tally_of(OPEN)), excepted=ExceptedCounts({"exposed": 1}, {"high": 1})), HIGH, None,
    ),
    "a new finding": (night(OPEN, changes=changed(findings={"high": {"new": 1}})), HIGH, "1 new finding (1 high)"),
    "a new finding, too small": (night(changes=changed(findings={"medium": {"new": 1}})), HIGH, None),
    "a new finding that is asked for": (
        night(changes=changed(findings={"medium": {"new": 2}})),
        FailOn(Severity.LOW, new=True),
        "2 new findings (2 medium)",
    ),
    "a finding of which the last run could not tell": (
        night(changes=changed(findings={"critical": {"decided": 1}})), HIGH, "1 new finding (1 critical)",
    ),
    "a finding that no exception covers any more": (
        night(changes=changed(findings={"high": {"uncovered": 1}})), HIGH, "1 new finding (1 high)",
    ),
    "findings that are resolved, gone or excepted": (
        night(changes=changed(findings={"high": {"resolved": 1, "gone": 1, "excepted": 1}})), HIGH, None,
    ),
    "newly exposed": (
        night(OPEN, changes=changed(verdicts={"exposed": {"new": 1, "worsened": 2}})), HIGH, "3 objects newly exposed",
    ),
    "newly shared": (night(changes=changed(verdicts={"shared": {"new": 1}})), HIGH, None),
    "worsened": (night(changes=changed(verdicts={"shared": {"worsened": 1}})), HIGH, "1 object worsened"),
    "improved": (night(changes=changed(verdicts={"shared": {"improved": 1, "resolved": 9}})), HIGH, None),
    "findings are never a reason": (
        night(OPEN, changes=changed(verdicts={"exposed": {"new": 1}}, findings={"high": {"new": 1}})), None, None,
    ),
    "a hole": (night(SHUT), None, "1 object could not be checked"),
    "a hole that is accepted": (night(SHUT, accepted=AcceptedHoles(1)), HIGH, None),
    "a rule's hole": (night(rules_undecided=[LOST]), HIGH, "1 rule could not be checked"),
    "cut off": (night(complete=False, resume=Resume(RUN, "a", "a signal")), HIGH, "the listing did not reach its end"),
    "an exception that expired last night": (night(**expired("2026-01-01")), HIGH, "1 exception expired"),
    "an exception that expired long ago": (night(**expired("2025-12-31")), HIGH, None),
    "a prefix that lists nothing": (night(target=target(prefix="typo/")), HIGH, "nothing is listed"),
    "a range that lists nothing": (night(target=target(prefix="typo/", start_after="typo/x")), HIGH, None),
}  # fmt: skip


def test_nights_that_are_an_alert_and_those_that_are_not() -> None:
    failures: list[object] = []
    for name, (summary, fail_on, words) in CASES.items():
        alert = alert_of(summary, None, fail_on)
        subject = None if alert is None else subject_of(alert)
        detail = event_of(summary, fail_on).detail
        reasons = "; ".join(detail["reasons"]).replace("undecided", "could not be checked")  # programs know the word
        expected = None if words is None else f"S3 audit of audited: {words}"
        if (subject, detail["alert"], reasons) != (expected, words is not None, words or ""):
            failures.append((name, subject, detail["alert"], reasons))
    assert not failures, failures


def group(prefix: str | None, **changes: Any) -> Group:
    found = {"kind": GroupKind.FINDING, "rule": "O02", "severity": HIGH, "audience": "anyone", "count": 3, "new": 2}
    return group_of(id="0" * 12, prefix=prefix, **found | changes)


def rollups(*groups: Group) -> RollUps:
    return RollUps(run=RUN, target=target(), complete=True, totals=totals_of(groups), groups=groups)


OPENED: Final = group("", kind=GroupKind.VERDICT, rule=None, severity=None, verdict=Verdict.EXPOSED)
WORSE: Final = night(
    OPEN,
    SHUT,
    changes=Changes(
        against=LAST,
        classes={"new": 4, "worsened": 1, "resolved": 2},
        findings={"high": {"new": 2}},
        verdicts={"exposed": {"new": 2}, "shared": {"worsened": 1}},
        causes=(Cause("the bucket policy changed", 3),),
    ),
    rules_undecided=[LOST],
    **expired("2026-01-01"),
)
MADE: Final = rollups(
    group("in/"),
    group("old/", new=0),
    group("low/", severity=Severity.LOW),
    group("meant/", excepted=3),
    group(None, rule="B01", audience=None, count=1, new=1),
    replace(OPENED, prefix="", count=2, rest=True),
    replace(OPENED, prefix="s/", verdict=Verdict.SHARED, audience="account 444455556666"),
    replace(OPENED, prefix="m/", verdict=Verdict.MASKED),
    group("b/", kind=GroupKind.UNDECIDED, rule=None, severity=None, audience="GetObjectAcl AccessDenied", count=1),
)  # fmt: skip


def test_alert_as_plain_text() -> None:
    alert = alert_of(WORSE, MADE, HIGH)
    assert alert is not None
    assert (
        text_of(alert)
        == f"""\
The audit of s3://audited/: 2 objects newly exposed; 1 object worsened; 2 new findings (2 high); 1 exception expired; \
1 object could not be checked; 1 rule could not be checked.

New or worsened, the worst first:
- Anyone on the internet can reach 2 objects elsewhere in the bucket (all new)
- Account 444455556666 can reach 3 objects below s/ (2 new)
- O02 (high): The ACL lets anyone on the internet read 3 objects below in/ (2 new)
- B01 (high): ACLs are not disabled on the bucket (all new)

1 object could not be checked:
- 1 object: GetObjectAcl AccessDenied, below b/

1 rule could not be checked:
- B01: GetBucketAcl AccessDenied

Exceptions that have expired. The objects that they covered count again:
- e1 of web, until 2026-01-01: it would cover 4

Since the last run, {LAST}: 4 new, 1 worsened, 2 resolved (verdicts and findings).
- the bucket policy changed: moved 3 objects
Listed 2, audited 1, vanished 0, undecided 1; exposed 1, unknown 1, shared 0, masked 0, private 0.
Report: runs/bucket=audited/run={RUN}/report.html"""
    )


def test_alert_for_a_chat() -> None:
    alert = alert_of(WORSE, MADE, HIGH)
    assert alert is not None
    told = json.loads(chat_message(alert))
    described = told["content"].pop("description").split("\n")
    assert told["content"].pop("title").startswith("S3 audit of audited: 2 objects newly exposed; ")
    context = {"bucket": "audited", "run": RUN}
    assert told == {
        "version": "1.0",
        "source": "custom",
        "content": {"textType": "client-markdown"},
        "metadata": {"eventType": "s3-audit", "enableCustomActions": False, "additionalContext": context},
    }
    assert "• 1 object: `GetObjectAcl AccessDenied`, below `b/`" in described
    assert described[-1] == f"Report: `runs/bucket=audited/run={RUN}/report.html`"


HOSTILE: Final = (
    "<!channel>/", "<!here|x>/", "@here/", "*bold*/", "`code`/", "~gone~/", "[a](http://evil.example)/",
    "<http://evil.example|s3>/", "HTTPS://evil.example/", "a\n- 9 new: private\n/", "&lt;b&gt;/", "<at>all</at>/",
    "\x1b[2J/", "\u202e\u2066/", "![x](http://evil.example/x.png)/", "a|b/", "#1/", "\\`/", "100%2F/",
)  # fmt: skip


def test_hostile_prefix_means_nothing_in_a_mail_or_a_chat() -> None:
    for prefix in HOSTILE:
        summary = night(SHUT, target=target(prefix=prefix), changes=changed(findings={"high": {"new": 1}}))
        alert = alert_of(summary, rollups(group(prefix)), HIGH)
        assert alert is not None
        description = json.loads(chat_message(alert))["content"]["description"]
        for line in (*text_of(alert).split("\n"), *description.split("\n")):
            assert line.isprintable(), ascii(line)
            assert not line.startswith("- 9"), line
        spans = re.findall("`[^`]*`", description)
        assert "`" not in re.sub("`[^`]*`", "", description)
        assert not re.search(r"[<>&@*~\[\]\\|#]", description)
        assert not any(re.search("https?://", span.lower()) for span in spans)
    alert = alert_of(night(SHUT, target=target(prefix="raw_data/2024-01=x/ünï 漢字/")), None, HIGH)
    assert alert is not None
    assert "`s3://audited/raw_data/2024-01=x/ünï 漢字/`" in json.loads(chat_message(alert))["content"]["description"]


def test_sizes_are_bounded_whatever_the_texts_are() -> None:
    odd = "\U0001f4a3\u202e`<&" * 60
    groups = [group(f"{odd}{number}/", audience=f"account {odd}") for number in range(20)]
    hole: dict[str, Any] = {"kind": GroupKind.UNDECIDED, "rule": None, "severity": None, "audience": odd}
    summary = night(
        SHUT,
        target=target(prefix=odd[:128]),
        complete=False,
        resume=Resume(RUN, odd, odd),
        out=odd,
        rules_undecided=[RuleUndecided(f"R{number}", odd, odd) for number in range(25)],
        exceptions=[ExceptionUse(odd, "O02", None, None, odd, odd, "2026-01-01", ExceptionState.EXPIRED, 4)] * 25,
        changes=changed(findings={"high": {"new": 1}}, why_not=odd, causes=tuple(Cause(odd, 1) for _ in range(25))),
    )
    summary = replace(summary, unread=tuple(UnreadCount(odd, odd, 1) for _ in range(25)))
    assert len(json.dumps(event_of(summary, HIGH).detail)) < MOST_EVENT / 2
    run = alert_of(summary, rollups(*groups, *(group(odd, **hole) for _ in range(25))), HIGH, [odd])
    for alert in (run, failure_alert("audit", "\u202e\U0001f4a3`é" * 1_500)):
        assert alert is not None
        message, subject = chat_message(alert), subject_of(alert)
        content = json.loads(message)["content"]
        assert (len(text_of(alert).encode()) <= MOST_BYTES, len(message.encode()) <= MOST_BYTES) == (True, True)
        assert (len(content["description"]) <= MOST_DESCRIPTION, len(content["title"]) <= MOST_TITLE) == (True, True)
        assert (len(subject) < 100, subject.isascii(), subject.isprintable()) == (True, True, True)


def listed(text: str) -> Sequence[str]:
    return [line for line in text.split("\n") if "O02 (high): " in line]


def test_alert_names_some_groups_and_counts_the_others() -> None:
    summary = night(changes=changed(findings={"high": {"new": 40}}))
    alert = alert_of(summary, rollups(*(group(f"{number:02}/") for number in range(40))), HIGH)
    assert alert is not None
    text = text_of(alert)
    assert len(listed(text)) == GROUPS
    assert f"- and {40 - GROUPS} more groups\n" in text
    assert "below 14/" in text
    assert "below 15/" not in text


def test_event_has_the_numbers_and_no_key() -> None:
    summary = replace(WORSE, target=target(prefix="p/", start_after="p/secret-a", stop_at="p/secret-b"))
    summary = replace(summary, complete=False, resume=Resume(RUN, "p/secret-c", "a signal"))
    detail = event_of(summary, HIGH).detail
    assert detail["target"] == {"bucket": "audited", "prefix": "p/", "versions": False, "whole": False}
    assert (detail["exit_code"], detail["complete"], detail["coverage"]["listed"]) == (4, False, 2)
    assert detail["verdicts"]["exposed"] == 1
    assert detail["changes"]["findings"] == {"high": {"new": 2}}
    assert detail["report"] == f"runs/bucket=audited/run={RUN}/report.html"
    assert "secret" not in json.dumps(detail)


def test_alert_names_some_holes_and_counts_the_others() -> None:
    rules = [RuleUndecided(f"R{number:02}", "GetBucketAcl", "AccessDenied") for number in range(23)]
    alert = alert_of(night(rules_undecided=rules), None, HIGH)
    assert alert is not None
    assert "23 rules could not be checked:\n" in text_of(alert)
    assert "- R19: GetBucketAcl AccessDenied\n- and 3 more rules\n" in text_of(alert)
