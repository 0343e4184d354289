"""The pages in headless Chromium: nothing fails, nothing is asked for, everybody can use them, and they print."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import AXE, Opener

PAGES = ["rich", "hostile", "plain", "empty", "verify", "index", "hostile index", "estate", "hostile estate"]
OPEN_ALL = "document.querySelectorAll('details').forEach(one => { one.open = true })"


@pytest.mark.parametrize("name", PAGES)
def test_page_complains_of_nothing_asks_for_nothing_and_fits_phone_and_paper(opener: Opener, name: str) -> None:
    opened = opener(name)
    opened.page.wait_for_load_state("networkidle")
    assert opened.complaints == []
    assert len(opened.requests) == 1
    assert opened.requests[0].startswith("file://")
    pdf = opened.page.pdf(format="A4", margin=dict.fromkeys(("top", "bottom", "left", "right"), "12mm"))
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 4
    page = opener(name, size="phone").page
    page.evaluate(OPEN_ALL)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.skipif(not AXE.exists(), reason="npm ci in tests/browser fetches axe-core")
@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [
        *((name, "desktop", "light") for name in PAGES),
        *((name, "phone", "dark") for name in PAGES),
        *((name, "desktop", "dark") for name in ("rich", "index")),
        *((name, "phone", "light") for name in ("rich", "index")),
    ],
)
def test_axe_finds_no_violation(opener: Opener, name: str, size: str, scheme: str) -> None:
    opened = opener(name, size=size, scheme=scheme)
    opened.page.evaluate(OPEN_ALL)
    assert opened.axe() == []


@pytest.mark.parametrize(("size", "media"), [("desktop", "screen"), ("phone", "screen"), ("desktop", "print")])
def test_each_sum_of_the_prefixes_stands_below_its_heading(opener: Opener, size: str, media: str) -> None:
    page = opener("rich", size=size).page
    page.evaluate(OPEN_ALL)
    page.emulate_media(media=media)
    heads, sums = page.evaluate(
        "['thead', 'tfoot'].map(part =>"
        " [...document.querySelectorAll(`.pref ${part} th, .pref ${part} td`)]"
        ".filter(one => one.checkVisibility()).map(one => Math.round(one.getBoundingClientRect().right)))"
    )
    assert heads == sums
    assert len(heads) > 2


def test_every_control_is_reached_and_works_by_keyboard(opener: Opener) -> None:
    page = opener("rich").page
    wanted = page.evaluate(
        "[...document.querySelectorAll('a[href], button, select, input, summary, [tabindex=\"0\"]')]"
        ".filter(one => one.checkVisibility() && !(one.type === 'radio' && !one.checked))"
        ".map((one, at) => (one.dataset.number = at))"
    )
    reached = set()
    for _ in range(len(wanted) + 10):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("Number(document.activeElement.dataset.number ?? -1)"))
    assert set(wanted) <= reached


def test_keys_search_open_and_clear(opener: Opener) -> None:
    page = opener("rich").page
    page.keyboard.press("/")
    page.keyboard.type("partners")
    assert page.locator("#groups > .group:visible").count() == 2
    assert "2 of 11 groups, 4,610 findings" in page.locator("#shown").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("#groups > .group:visible").count() == 11
    page.locator("#groups summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#groups .group[open]").count() == 1
    page.locator("#all").focus()
    page.keyboard.press("Enter")
    assert page.locator("#groups .group[open]").count() == 11


def test_filters_narrow_the_list_say_so_and_add_up_to_the_findings(opener: Opener) -> None:
    page = opener("rich").page
    chips = page.locator(".tok:has([name=sev])").all_inner_texts()
    numbers = [int(text.split()[-1].replace(",", "")) for text in chips]
    assert f"{sum(numbers):,} in 11 groups" in page.locator("#h-find").inner_text()
    page.locator("input[name=sev][value=critical]").press("Space")
    assert page.locator("#groups > .group:visible").count() == 2
    assert "2 of 11 groups, 49 findings" in page.locator("#shown").inner_text()
    page.locator("#q").fill("no such key")
    assert "Nothing matches" in page.locator("#shown").inner_text()
    page.locator("#q").fill("")
    page.locator("input[name=sev][value=critical]").press("Space")
    page.locator("input[name=new]").press("Space")
    assert page.locator("#groups > .group:visible").count() == 2


def test_card_leads_to_rows_map_to_the_objects_of_a_box_and_a_theme_is_chosen(opener: Opener) -> None:
    page = opener("rich").page
    page.locator("a.card").first.press("Enter")
    expect(page.locator("#h-open")).to_be_in_viewport()
    page.locator("input[name=map][value=risk]").press("Space")
    box = page.locator("#map-risk a").first
    name = box.get_attribute("href").removeprefix("#")
    box.press("Enter")
    # The browser tells the script of the new address in a task of its own, some time after the key.
    expect(page.locator(f"[id='{name}'][open] > summary")).to_be_focused()
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("#theme").select_option("dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_summary_table_and_each_command_are_copied_whole(opener: Opener) -> None:
    page = opener("rich").page
    page.locator("#copy").press("Enter")
    page.get_by_text("Copied").wait_for()
    with page.expect_download() as waiting:
        page.locator("#csv").press("Enter")
    rows = list(csv.reader(io.StringIO(Path(waiting.value.path()).read_text())))
    assert rows[0] == ["severity", "findings", "new", "what"]
    assert len(rows) == 12
    page.evaluate(OPEN_ALL)
    buttons = page.locator(".cmd > .copy")
    assert buttons.count() == page.locator(".cmd").count() > 20
    buttons.first.press("Enter")
    page.locator(".cmd").first.get_by_text("Copied").wait_for()
    page.locator("#q").focus()
    page.keyboard.press("Control+V")
    assert page.locator("#q").input_value() == page.locator(".cmd code").first.inner_text().strip()


@pytest.mark.parametrize("size", ["desktop", "phone"])
@pytest.mark.parametrize("name", ["rich", "verify", "index"])
def test_bar_on_top_is_one_line(opener: Opener, name: str, size: str) -> None:
    page = opener(name, size=size).page
    heights = page.evaluate("['.top', '#theme'].map(one => document.querySelector(one).offsetHeight)")
    assert heights[0] < 2 * heights[1]


@pytest.mark.parametrize("media", ["screen", "print"])
def test_small_groups_have_their_keys_without_a_click(opener: Opener, media: str) -> None:
    page = opener("plain").page
    page.emulate_media(media=media)
    assert page.get_by_text("k0", exact=True).first.is_visible()
    assert page.locator("summary code", has_text="s").first.is_visible()
    assert page.locator(".group[open]").count() == 0


@pytest.mark.parametrize("name", ["rich", "plain"])
def test_page_is_readable_without_its_script(opener: Opener, name: str) -> None:
    page = opener(name, script=False).page
    assert page.locator("h1").is_visible()
    assert not page.locator(".tools").is_visible()
    assert not page.locator(".filters").is_visible()
    assert page.locator("#groups > .group").count() == page.locator("#groups > .group:visible").count()
    page.locator("#groups summary").first.click()
    assert page.locator("#groups .body").first.is_visible()


def test_hostile_text_is_only_text(opener: Opener) -> None:
    opened = opener("hostile")
    page = opened.page
    page.evaluate(OPEN_ALL)
    page.locator("#q").fill("<script>")
    for name in ("#copy", "#csv", "#all"):
        page.locator(name).press("Enter")
    assert page.locator("script").count() == 1
    assert page.locator("iframe, img, object, embed, base, link").count() == 0
    assert page.evaluate("window.alerted === undefined")
    assert opened.complaints == []
    assert "{{ 7 * 7 }}" in page.locator("h1 ~ *, .kicker").first.inner_text()


@pytest.mark.parametrize("script", [True, False])
def test_index_leads_to_the_pages_of_its_targets(opener: Opener, script: bool) -> None:
    page = opener("index", script=script).page
    rows = page.locator("table.targets tbody tr")
    assert (rows.count(), rows.locator("a").count()) == (8, 7)
    assert page.locator(".tools").is_visible() == script
    link = page.locator("table.targets a").first.get_attribute("href")
    assert link == "bucket=acme-data-prod/run=20261122T030004Z-5f20c1/report.html"


@pytest.mark.parametrize("name", ["index", "hostile index", "estate", "large estate"])
def test_index_has_no_markup_but_its_own(opener: Opener, name: str) -> None:
    page = opener(name).page
    assert page.locator("script").count() == 1
    assert page.locator("iframe, img, object, embed, base, link").count() == 0
    assert page.evaluate(
        "[...document.links].every(one => /^(bucket=[\\w.-]+\\/run=|#)/.test(one.getAttribute('href')))"
    )


def test_paper_has_every_exposed_target_and_every_reason(opener: Opener) -> None:
    page = opener("large index").page
    exposed, failed = page.locator("a:visible", has_text="open-"), page.locator(".reasons li:visible")
    assert (exposed.count(), failed.count()) == (2, 2)
    page.emulate_media(media="print")
    assert (exposed.count(), failed.count()) == (40, 40)
    assert page.locator("a:visible", has_text="shut-").count() == 10
    assert page.locator("p.paper:visible").all_inner_texts() == [
        "Paper shows the first 10 of 40; the page on a screen has all."
    ]


def test_estate_of_a_thousand_buckets_is_whole_on_a_screen_and_says_what_paper_leaves_out(opener: Opener) -> None:
    page = opener("large estate").page
    page.evaluate(OPEN_ALL)
    assert page.locator("#targets").count() == 1
    rows = page.locator("table.targets:not(.accounts) tbody tr:visible, .reasons li:visible")
    assert rows.count() == 1_012 + 1  # the sums have a row, too
    assert page.locator("p.lead b").inner_text().startswith("71 buckets in 3 accounts = ")
    page.emulate_media(media="print")
    assert 10 < rows.count() < 30
    assert "Paper shows the first 10 of 1,002" in page.locator("p.paper:visible").inner_text()
    assert page.locator("table.accounts thead th:visible").count() == 5
