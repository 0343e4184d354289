"""The page shows everything, runs nothing and loads nothing."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

from auditor.models import RuleUndecided, Severity
from auditor.reports.html import WorstFindings, render
from auditor.reports.lines import finding_line, undecided_line
from tests.odd_keys import ODD_KEYS
from tests.reports.samples import denied, finding, judged, sample_summary, tally_of, target

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
    "tbody", "tr", "th", "td", "ul", "li", "code",
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
    lines = [{**finding_line(finding(text)), "grantee": text, "message": text, "permission": text, "version_id": text}]
    lost = [{"key": text, "version_id": text, "unread": [{"action": text, "code": text}], "rules": [text]}]
    aim = target(prefix=text, start_after=text, stop_at=text)
    made = sample_summary(tally_of(denied("a")), target=aim, rules_undecided=[RuleUndecided(text, text, text)])
    made |= {"run": text, "engine": text, "unread": [{"action": text, "code": text, "count": 1}]}
    return render({**made, "not_looked_at": [*made["not_looked_at"], text]}, lines, 0, lost)


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
    }
    assert all(character.isprintable() or character == "\n" for character in page)


def test_key_is_shown_whole() -> None:
    key = '<b a="1">\n\u202e\\n'
    page = Page(render(sample_summary(), [finding_line(finding(key))]))
    assert r'<b a="1">\n\u202e\\n' in page.codes


def test_nothing_may_run_or_load() -> None:
    page = render(sample_summary())
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'\"" in page
    assert "<script" not in page
    assert "url(" not in page
    assert "href" not in page


def test_everything_the_run_knows_is_there() -> None:
    tally = tally_of(judged("a", finding("a")), denied("b"))
    made = sample_summary(tally, rules_undecided=[RuleUndecided("B01", "GetBucketAcl", "Code9")])
    line = undecided_line(denied("b"))
    assert line is not None
    page = render(made, [finding_line(finding("a"))], 1234, [line])
    for word in ("Complete. Holes: 1 object undecided; 1 rule undecided", "2 objects listed, 1 findings"):
        assert word in page
    for word in ("GetObjectAcl", "AccessDenied", "GetBucketAcl", "Code9", "1,234 more", "presigned URLs"):
        assert word in page


def test_run_that_was_cut_short_says_so_first() -> None:
    page = render(sample_summary(complete=False))
    assert '<p class="state hole"><strong>Not complete. Holes: the listing did not reach its end.' in page


def test_run_without_holes() -> None:
    page = render(sample_summary(tally_of(judged("a"))))
    assert "<strong>Complete. No holes.</strong>" in page
    assert "Undecided objects" not in page


def test_finding_of_the_bucket_and_hashing() -> None:
    tally = tally_of(judged("a"))
    tally.hash("pending")
    page = render(sample_summary(tally, algorithms=["sha256", "md5"]), [finding_line(finding(None, "B01"))])
    assert "<td>the bucket</td>" in page
    assert "Hashing (sha256, md5)" in page


def test_undecided_beyond_those_shown_are_counted() -> None:
    made = sample_summary(tally_of(*(denied(f"k{number}") for number in range(5))))
    lines = [line for number in range(2) if (line := undecided_line(denied(f"k{number}")))]
    assert "And 3 more in the run folder" in render(made, undecided=lines)


def collected(limit: int, *lines: dict[str, Any]) -> WorstFindings:
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
    assert [(line["key"], line["severity"]) for line in worst.lines()] == [
        ("c", "critical"), (None, "high"), ("a", "high"), ("b", "low"),
    ]  # fmt: skip
    assert worst.more == 1


def test_few_worst_of_very_many() -> None:
    order = list(Severity)
    lines = [finding_line(finding(f"{n * 7919 % 5000:05}", severity=order[n % 5])) for n in range(5000)]
    worst = collected(300, *lines)
    expected = sorted(lines, key=lambda line: (order.index(Severity(line["severity"])), line["key"]))[:300]
    assert worst.lines() == expected
    assert worst.more == 4700


def test_equal_findings_are_all_kept() -> None:
    line = finding_line(finding("same"))
    assert collected(3, line, dict(line), dict(line), dict(line)).lines() == [line] * 3


def test_no_room_at_all() -> None:
    assert collected(0, finding_line(finding("a"))).more == 1
