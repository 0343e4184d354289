"""The page of an audit says what its run knows; text from outside stays text; nothing is loaded."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

from msgspec.structs import replace

from auditor.model.access import Audience, AudienceKind, ObjectAccess, Verdict
from auditor.model.finding import Finding, Judgement, RuleUndecided, Severity
from auditor.model.object import Unread
from auditor.model.rollup import GroupKind, Sample
from auditor.model.summary import Summary, UnreadCount
from auditor.model.version import VERSION
from tests.support.odd_keys import ODD_KEYS
from tests.support.samples.pages import group_of
from tests.support.samples.reports import (
    audit_page,
    denied,
    finding,
    gone,
    judged,
    page_source,
    sample_summary,
    tally_of,
    target,
)

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</code></table><iframe src=//evil>",
    "</style><script>alert(1)</script>",
    "\u202egpj.exe",
    "</title><script>",
    "a\nb\x00c",
    "&lt;b&gt;",
    "{{ 7 * 7 }}{% include 'style.css' %}",
    *list(ODD_KEYS.values())[::4],
]
VOID = {"meta", "input", "rect", "line", "path", "polyline", "circle"}


class Page(HTMLParser):
    """The tags, attributes and texts of a page. Fails where its tags do not nest."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in {"script", "style"}:
            self.text += data


def page_of(summary: Summary | None = None, *judgements: Judgement) -> str:
    return audit_page(page_source(summary or sample_summary(), *judgements))


def words_of(summary: Summary | None = None, *judgements: Judgement) -> str:
    return " ".join(Page(page_of(summary, *judgements)).text.split())


def hostile_page(text: str) -> str:
    found = Finding("f" * 32, text, Severity.HIGH, text, text, text, text, text)
    access = ObjectAccess(Verdict.EXPOSED, (Audience(AudienceKind.GROUP, text),))
    bad = replace(judged(text, found, version_id=text), access=access)
    refused = judged(text, version_id=f"{text}2", verdict=Verdict.UNKNOWN, acl=Unread(text, text))
    made = sample_summary(
        tally_of(denied("a"), judged("b", finding("b"), verdict=Verdict.EXPOSED)),
        target=target(prefix=text, start_after=text, stop_at=text),
        rules_undecided=[RuleUndecided(text, text, text)],
        trust_unused=[text],
    )
    changed = replace(
        made,
        run=text,
        engine=text,
        rules={text: 1},
        unread=(UnreadCount(text, text, 1),),
        not_looked_at=(*made.not_looked_at, text),
        audiences={Verdict.EXPOSED: {f"group {text}": 1}, Verdict.SHARED: {text: 1}},
    )
    return page_of(changed, bad, refused)


def test_only_the_style_and_script_of_the_page_may_run() -> None:
    page = page_of()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    for tag in ("style", "script"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src &#39;sha256-{digest}&#39;" in policy
    assert policy.startswith("default-src &#39;none&#39;;")
    assert "unsafe" not in policy
    assert not {name for name in Page(page).attributes if name == "style" or name.startswith("on")}
    assert not re.search(r"(?:https?:)?//(?!www\.w3\.org)\w", re.sub("s3://", "", page))


def test_everything_the_run_knows_is_there() -> None:
    one = judged("a", finding("a"), verdict=Verdict.EXPOSED)
    made = sample_summary(
        tally_of(one, denied("b"), gone("c")),
        rules_undecided=[RuleUndecided("B01", "GetBucketAcl", "Code9")],
        accepted_rules=1,
    )
    said = words_of(made, one, denied("b"))
    for words in (
        "listing complete1 object could not be checkedrun",
        "Holes accepted in the configuration: 1 rule could not be checked.",
        "GetBucketAcl: Code9",
        "presigned URLs",
        made.run,
        f"auditor {VERSION}",
        "Friday 2 January 2026, 03:04 UTC",
    ):
        assert words in said, words


def test_page_of_four_hundred_groups_is_below_a_megabyte() -> None:
    groups = [
        group_of(
            kind=GroupKind.FINDING,
            id=f"{at:012x}",
            rule="O11",
            verdict=Verdict.SHARED,
            severity=Severity.MEDIUM,
            audience="account 444455556666",
            prefix=f"{'p' * 200}/{at:03}/",
            count=2_500,
            new=1,
            since="2026-01-02T03:04:05Z",
            samples=tuple(Sample(f"{'k' * 1_000}{number}") for number in range(5)),
        )
        for at in range(400)
    ]
    source = page_source(sample_summary())
    page = audit_page(replace(source, rollups=replace(source.rollups, groups=tuple(groups))))
    assert page.count('<details class="group"') == 400
    assert len(page.encode()) < 1_000_000


def test_hostile_words_stay_words() -> None:
    for text in HOSTILE:
        page, plain = hostile_page(text), Page(hostile_page(re.sub("[^/]", "p", text)))
        seen = Page(page)
        assert sorted(seen.tags) == sorted(plain.tags), ascii(text)
        assert seen.attributes == plain.attributes, ascii(text)
        assert all(character.isprintable() or character == "\n" for character in page), ascii(text)


HEADLINES = {
    "": "No object is listed.",
    "private": "No object is open to strangers or to other accounts.",
    "masked": "No object is open to strangers or to other accounts.",
    "shared private": "No object is exposed. 1 object is shared with others.",
    "shared shared": "No object is exposed. 2 objects are shared with others.",
    "unknown shared": "No object is known to be exposed, and of 1 object it is not known.",
    "exposed unknown": "Strangers can get at 1 object.",
    "exposed exposed": "Strangers can get at 2 objects.",
}


def test_headline_is_the_widest_verdict() -> None:
    for verdicts, headline in HEADLINES.items():
        judgements = (judged(f"k{at}", verdict=Verdict(one)) for at, one in enumerate(verdicts.split()))
        made = sample_summary(tally_of(*judgements))
        assert headline in words_of(made)
        cut = words_of(replace(made, complete=False))
        assert "Not complete. " in cut
        assert "complete ·" not in cut
        assert ("No object that was looked at is open" in cut) == (verdicts in ("private", "masked"))
    for severity, good in ((Severity.CRITICAL, False), (Severity.HIGH, False), (Severity.MEDIUM, True)):
        page = page_of(sample_summary(tally_of(judged("a", finding("a", "E01", severity)))))
        assert ('<h1 id="verdict" class="good">' in page) is good, severity
