"""The index page of several targets: its sums add up, the worst come first, and nothing is called clean for want of a
result.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from auditor.model.target import Target
from auditor.reports.page.index import index_page
from auditor.reports.summary import IndexEntry
from tests.support.samples.index_pages import (
    ESTATE,
    entry,
    estate_entries,
    hostile_entries,
    hostile_estate,
    run_of,
)
from tests.support.samples.reports import print_index

PLACE = "s3://acme-reports/audits"
CLEAN = entry(run_of("clean", private=5))


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
