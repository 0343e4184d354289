"""The page shows everything, runs nothing and loads nothing."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from auditor import __version__
from auditor.model.access import Audience, AudienceKind, ObjectAccess, Verdict
from auditor.model.finding import RuleUndecided, Severity
from auditor.model.object import Unread
from auditor.model.run_lines import UndecidedLine
from auditor.model.summary import UnreadCount
from auditor.reports.highlights import ExposedObject, Highlights
from auditor.reports.lines import finding_line
from auditor.reports.page import render
from auditor.rules.access import o02_everyone_read as o02
from tests.support.odd_keys import ODD_KEYS
from tests.support.samples.reports import OWNER, denied, finding, judged, sample_summary, shown_of, tally_of, target

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</code></table><iframe src=//evil>",
    "\u202egpj.exe",
    "</title><script>",
    "a\nb\x00c",
    "&lt;b&gt;",
    *ODD_KEYS.values(),
]
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "strong", "div", "span", "table", "thead",
    "tbody", "tr", "th", "td", "ul", "li", "code", "dl", "dt", "dd",
}  # fmt: skip
VOID = {"meta"}


class Page(HTMLParser):
    """Every tag, attribute and text of a page; fails when the tags do not nest."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.codes: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag == "code":
            self.codes.append("")
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "code":
            self.codes[-1] += data


def hostile_page(text: str) -> str:
    words: dict[str, Any] = dict.fromkeys(("grantee", "message", "permission", "version_id", "rule"), text)
    shown = Highlights()
    shown.add_findings([replace(finding_line(finding(text)), **words)])
    shown.exposed.append(ExposedObject(text, text, (text,)))
    shown.undecided.append(UndecidedLine(text, text, (Unread(text, text),), (text,)))
    aim = target(prefix=text, start_after=text, stop_at=text)
    made = sample_summary(
        tally_of(denied("a"), judged("b", verdict=Verdict.EXPOSED)),
        target=aim,
        rules_undecided=[RuleUndecided(text, text, text)],
    )
    unread, not_looked_at = (UnreadCount(text, text, 1),), (*made.not_looked_at, text)
    return render(replace(made, run=text, engine=text, unread=unread, not_looked_at=not_looked_at), shown)


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_hostile_words_stay_words(text: str) -> None:
    page = hostile_page(text)
    seen = Page(page)
    assert seen.tags <= ALLOWED
    assert seen.attributes <= {
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
        "style",
        "dir",
        "scope",
        "role",
        "title",
        "data-label",
    }
    assert all(character.isprintable() or character == "\n" for character in page)


def test_key_is_shown_whole() -> None:
    key = '<b a="1">\n\u202e\\n'
    page = Page(render(sample_summary(), shown_of(judged("a", finding(key)))))
    assert r'<b a="1">\n\u202e\\n' in page.codes


def test_nothing_may_run_or_load() -> None:
    page = render(sample_summary())
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'\"" in page
    assert "<script" not in page
    assert "url(" not in page
    assert "href" not in page


def test_everything_the_run_knows_is_there() -> None:
    tally = tally_of(judged("a", finding("a")), denied("b"))
    made = sample_summary(tally, rules_undecided=[RuleUndecided("B01", "GetBucketAcl", "Code9")], accepted_rules=1)
    page = render(made, shown_of(judged("a", finding("a")), denied("b")))
    for word in ("Complete. Holes: 1 object undecided.", "2 objects listed", "accepted in the configuration: 1 rule"):
        assert word in page
    for word in ("GetObjectAcl", "AccessDenied", "GetBucketAcl", "Code9", "presigned URLs"):
        assert word in page
    assert f'Begun on 2 January 2026 at 03:04 UTC: run <code dir="ltr">{made.run}</code>, 12.3 s' in page
    assert f"auditor {__version__}" in page


def test_headline_counts_in_words_and_is_not_green_when_something_is_exposed() -> None:
    one = judged("a", finding("a"), finding("a", "O05", Severity.MEDIUM), verdict=Verdict.EXPOSED)
    page = render(sample_summary(tally_of(one, denied("b"))))
    assert '<p class="state bad">' in page
    headline = page.partition('<p class="state bad">')[2].partition("</p>")[0]
    assert '<strong class="exposed">1 exposed</strong>, 1 unknown, 2 findings: ' in headline
    assert '<span class="high">1 high</span>, <span class="medium">1 medium</span>.' in headline
    assert "critical" not in headline


@pytest.mark.parametrize(
    ("severity", "tone"), [(Severity.CRITICAL, "state bad"), (Severity.HIGH, "state bad"), (Severity.MEDIUM, "state")]
)
def test_tone_follows_the_worst_finding(severity: Severity, tone: str) -> None:
    assert f'<p class="{tone}">' in render(sample_summary(tally_of(judged("a", finding("a", "E01", severity)))))


def test_object_that_only_the_bucket_policy_opens_is_named_first() -> None:
    labelled = finding("public/index.html", "M01", Severity.LOW)
    opened = judged("public/index.html", labelled, verdict=Verdict.EXPOSED)
    page = render(sample_summary(tally_of(opened, judged("b"))), shown_of(opened, judged("b")))
    assert page.index("public/index.html") < page.index("<h2>Findings</h2>")
    assert "the bucket policy opens the object" in page


def test_exposed_objects_beyond_those_shown_are_counted() -> None:
    many = [judged(f"k{number:04}", verdict=Verdict.EXPOSED) for number in range(203)]
    page = render(sample_summary(tally_of(*many)), shown_of(*many))
    assert "k0199" in page
    assert "k0200" not in page
    assert "And 3 more in the run folder, below <code>objects/</code>" in page


def test_nothing_exposed_has_no_such_section() -> None:
    page = render(sample_summary(tally_of(judged("a"))), shown_of(judged("a")))
    assert "Exposed objects" not in page
    assert "0 exposed" in page


@pytest.mark.parametrize(("verdict", "marked"), [(Verdict.MASKED, True), (Verdict.EXPOSED, False)])
def test_masked_finding_does_not_look_like_an_open_one(verdict: Verdict, marked: bool) -> None:
    one = judged("a", finding("a"), verdict=verdict)
    page = render(sample_summary(tally_of(one)), shown_of(one))
    assert ("(masked today)" in page) is marked
    assert verdict.value in page.partition('<th scope="col">Verdict</th>')[2]


def test_rules_that_fired_say_what_they_mean_and_what_mends_them() -> None:
    one = judged("a", finding("a"), finding("a"))
    page = render(sample_summary(tally_of(one)), shown_of(one))
    assert f'<span title="{o02.check.title}">O02</span>' in page
    assert f"<dt>O02 {o02.check.title} (2 findings)</dt>" in page
    assert "<dd>Fix: set Object Ownership to BucketOwnerEnforced, or remove the grant" in page
    assert "<dt>O01" not in page


def test_canonical_id_is_cut_in_its_middle_and_whole_where_it_is_pointed_at() -> None:
    shown = Highlights()
    shown.add_findings([replace(finding_line(finding("a")), grantee=OWNER)])
    assert f'<code dir="ltr" title="{OWNER}">a0a0a0a0…a0a0a0a0</code>' in render(sample_summary(), shown)


def test_run_that_was_cut_short_says_so_first() -> None:
    page = render(sample_summary(complete=False))
    assert '<p class="state bad"><strong>Not complete. Holes: the listing did not reach its end.' in page


def test_run_without_holes() -> None:
    page = render(sample_summary(tally_of(judged("a"))))
    assert "<strong>Complete. No holes.</strong>" in page
    assert "Undecided objects" not in page


def test_finding_of_the_bucket_and_hashing() -> None:
    tally = tally_of(judged("a"))
    tally.hash("pending")
    shown = Highlights()
    shown.add_findings([finding_line(finding(None, "B01"))])
    page = render(sample_summary(tally, algorithms=["sha256", "md5"]), shown)
    assert '<td class="key" data-label="Key">the bucket</td>' in page
    assert "Hashing (sha256, md5)" in page


def test_what_is_beyond_those_shown_is_counted() -> None:
    made = sample_summary(tally_of(*(denied(f"k{number}") for number in range(5))))
    assert "And 3 more in the run folder, below <code>undecided/</code>" in render(
        made, shown_of(*(denied(f"k{number}") for number in range(2)))
    )
    many = Highlights()
    many.add_findings(finding_line(finding(f"k{number}")) for number in range(1_003))
    assert "And 3 more in the run folder, below <code>findings/</code>" in render(made, many)


def test_audiences_are_escaped() -> None:
    access = ObjectAccess(Verdict.SHARED, (Audience(AudienceKind.GROUP, "<b>"),))
    page = render(sample_summary(tally_of(replace(judged("a"), access=access)), trust_unused=["<i>"]))
    assert '<code dir="ltr">group &lt;b&gt;</code>' in page
    assert '<code dir="ltr">&lt;i&gt;</code>' in page
