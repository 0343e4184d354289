"""The index page of several targets: its sums add up, the worst come first, and nothing is called clean for want of a
result.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from auditor.model.target import Target
from auditor.reports.page.index import COLUMNS, index_page
from auditor.reports.sum_summaries import IndexEntry
from tests.support.samples.index_pages import (
    ESTATE,
    GONE,
    entry,
    estate_entries,
    hostile_entries,
    hostile_estate,
    rich_entries,
    run_of,
)
from tests.support.samples.reports import print_index

PLACE = "s3://acme-reports/audits"
CLEAN = entry(run_of("clean", private=5))


def test_sums_are_those_of_the_lines_and_of_every_object() -> None:
    page = index_page(rich_entries(), PLACE)
    for at, _ in enumerate(COLUMNS):
        numbers = [row.numbers[at] for row in page.rows]
        assert page.totals[at] == sum(number for number in numbers if number is not None)
    parts = {part.sign.name: part.number for part in page.coverage.parts}
    assert sum(parts.values()) == page.coverage.listed == page.totals[COLUMNS.index("listed")]
    assert parts["exposed"] == page.totals[0] == 1_300
    cards = {card.sign.name: card.number for card in page.cards}
    assert (cards["exposed"], cards["intended"], cards["shared"]) == (1_300, 20_712, 9_480)
    text = print_index(page)
    assert "1,300 exposed + 9,480 shared + 312 unknown + 22,140 masked + 20,712 public by intent" in text
    assert "= 3,012,017 listed" in text


def test_worst_come_first_and_each_hole_is_named() -> None:
    page = index_page(rich_entries(), PLACE)
    lists = [(one.sign.label, [row.target.removeprefix("s3://acme-") for row in one.rows]) for one in page.lists]
    assert lists == [
        ("exposed", ["data-prod", "backups"]),
        ("not audited", ["archive"]),
        ("with holes", ["contracts", "logs"]),
        ("shared", ["partners/exports/2026/"]),
        ("closed", ["media", "site"]),
    ]
    assert {row.target: row.aside for row in page.rows if row.bad} == {
        "s3://acme-archive": GONE,
        "s3://acme-backups": "no complete run since 19 November 2026",
        "s3://acme-contracts": "312 objects could not be checked; 1 rule could not be checked",
        "s3://acme-logs": "the listing did not reach its end",
        "s3://acme-partners/exports/2026/": "nothing is listed",
    }
    head = page.headline
    assert head.bad
    assert [chip.text for chip in head.chips] == ["8 targets", "1 not audited", "4 targets with holes"]
    assert "The runs were made on several days: the oldest began on Thursday 19 November 2026, 03:00 UTC." in head.notes
    assert (page.rows[2].link, page.rows[2].numbers) == (None, (None,) * len(COLUMNS))
    assert page.rows[0].link == "bucket=acme-data-prod/run=20261122T030004Z-5f20c1/report.html"


def test_estate_adds_up_in_its_first_line_and_by_account() -> None:
    page = index_page(estate_entries(), PLACE, [ESTATE])
    assert page.headline.bold == f"{ESTATE.line}."
    assert page.headline.lead.startswith("2 of 72 targets have exposed objects. ")
    assert [name for name, _ in page.accounts] == [
        "account 333344445555 (sandbox)",
        "account 222233334444",
        "account 111122223333 (production)",
    ]
    assert [(row.counts.holes, row.hole is None) for _, row in page.accounts] == [(0, False), (1, True), (0, True)]
    assert page.headline.notes[0] == ESTATE.notes[0]
    assert [row.sign.label for row in page.rows[:4]] == ["exposed", "exposed", "not audited", "not audited"]
    assert {row.sign.label for row in page.rows[-3:]} == {"excluded"}
    assert not [row for row in page.rows if row.sign.label == "excluded" and row.bad]
    dormant = next(part for part in page.coverage.parts if part.sign.label == "dormant")
    assert dormant.number == 30
    assert sum(part.number for part in page.coverage.parts) == page.coverage.listed
    text = print_index(page)
    places = [text.index(word) for word in ("71 buckets in 3 accounts", "typo*", "Accounts", "Exposed <span")]
    assert places == sorted(places)
    assert text.count("account 111122223333 (production)") == 1 + 24


def test_several_estates_have_a_line_each() -> None:
    other = replace(ESTATE, folder="account=222233334444", line="1 bucket in 1 account = 1 audited", notes=())
    page = index_page(estate_entries(), PLACE, [ESTATE, other])
    assert page.headline.notes[:2] == (f"estate=shop: {ESTATE.line}", f"account=222233334444: {other.line}")
    assert ESTATE.line not in page.headline.bold
    assert {name.rpartition(", ")[2] for name, _ in page.accounts} == {"estate=shop", "account=222233334444"}


CLOSED = "No object is open to strangers or to other accounts"
SEEN = "Not complete. No object that was looked at is open to strangers or to other accounts."
VERDICTS: list[tuple[list[IndexEntry], str, bool]] = [
    ([CLEAN, CLEAN], f"{CLOSED}.", False),
    ([CLEAN, entry(run_of("a", exposed=2, new=2))], "Strangers can get at 2 objects. 2 of them are new.", True),
    ([CLEAN, entry(run_of("a", intended=3))], f"{CLOSED} but 3 objects by intent.", False),
    ([CLEAN, IndexEntry(target=Target("a"), failed="x")], SEEN, True),
    ([CLEAN, IndexEntry(target=Target("a"))], SEEN, True),
    ([IndexEntry(target=Target("a"), failed="x")] * 2, "No target was audited.", True),
    ([CLEAN, replace(CLEAN, failed="it failed")], f"{CLOSED}.", True),
    ([], "No target was audited.", False),
]


def test_verdict_on_all_targets() -> None:
    for entries, said, bad in VERDICTS:
        page = index_page(entries, PLACE)
        assert ("".join(page.headline.title), page.headline.bad) == (said, bad)
        assert "<h1" in print_index(page)


def test_hostile_text_is_only_text() -> None:
    for text in (
        print_index(index_page(hostile_entries(), '"><script>alert(1)</script>')),
        print_index(index_page(hostile_entries(), PLACE, [hostile_estate()])),
    ):
        assert len(re.findall("<script", text)) == 1
        for forbidden in ("<img", "\x1b", "\u202e"):
            assert forbidden not in text
        ours = r'href="(#[a-z]+|bucket=[a-z0-9-]+/run=[0-9TZa-f-]+/report\.html)"'
        assert all(re.fullmatch(ours, one) for one in re.findall(r'href="[^"]*"', text))
    assert "{{ 7 * 7 }}" in text


def test_run_of_another_night_is_a_hole() -> None:
    old = entry(run_of("old", private=5, run="20261120T030004Z-5f20c1"))
    page = index_page([CLEAN, old], PLACE)
    assert [row.target for row in page.rows if row.bad] == ["s3://old"]
    assert page.headline.bad
