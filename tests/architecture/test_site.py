"""The site's pages: each has its place in the navigation, and those by hand stay few and short."""

from __future__ import annotations

import re
from typing import Final

from tests.support.paths import ROOT

DOCS: Final = ROOT / "docs"
GENERATED: Final = frozenset({"cli.md", "configuration.md", "rules.md"})
_PAGE: Final = re.compile(r"^ +- ([a-z/A-Z-]+\.md)$", re.MULTILINE)


def test_each_page_stands_once_in_the_navigation() -> None:
    listed = _PAGE.findall((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def test_a_reader_has_at_most_18_pages_and_36_000_words_by_hand() -> None:
    words = {path.name: len(path.read_text(encoding="utf-8").split()) for path in DOCS.glob("*.md")}
    by_hand = {name: number for name, number in words.items() if name not in GENERATED}
    assert len(by_hand) <= 18
    assert sum(by_hand.values()) <= 36_000, by_hand
