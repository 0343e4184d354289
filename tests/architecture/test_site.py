"""The site's pages: each has its place in the navigation, and those by hand stay few and short."""

from __future__ import annotations

import re
from typing import Final

from tests.support.paths import ROOT

DOCS: Final = ROOT / "docs"
GENERATED: Final = frozenset({"cli.md", "configuration.md", "rules.md"})
_PAGE: Final = re.compile(r"^ +- ([a-z/A-Z-]+\.md)$", re.MULTILINE)
_MEASURED: Final = re.compile(r"<!-- (\w+) -->\n.*?<!-- /\1 -->", re.DOTALL)
_WRITTEN: Final = re.compile(r"<!-- \w+, written by .*? -->\n(?:\|.*\n|\n(?=\|))*")
"""Tables that the bench, the simulation of nights and `make docs` write, as are those above."""


def test_each_page_stands_once_in_the_navigation() -> None:
    listed = _PAGE.findall((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def test_a_reader_has_at_most_18_pages_and_28_000_words_by_hand() -> None:
    pages = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md") if path.name not in GENERATED}
    words = {name: len(_WRITTEN.sub("", _MEASURED.sub("", text)).split()) for name, text in pages.items()}
    assert len(words) <= 18
    assert sum(words.values()) <= 28_000, words
