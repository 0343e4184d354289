"""Every link of a document to another one leads to a page and a heading that are there; every `make` target exists."""

from __future__ import annotations

import re
from pathlib import Path

from tests.architecture.test_shown_commands import pages
from tests.support.paths import ROOT

_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]*)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_MAKE = re.compile(r"(?:^|`)(?:\$ )?make ([a-z][a-z0-9-]*)", re.MULTILINE)
_TARGET = re.compile(r"^([a-z][a-z0-9-]*):", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Return the anchors of the page's headings, as GitHub makes them."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    named = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(text))
    return {name.strip().replace(" ", "-") for name in named}


def broken(page: Path) -> list[str]:
    """Return the links of the page that lead nowhere."""
    found = []
    for link in _LINK.findall(_FENCED.sub("", page.read_text(encoding="utf-8"))):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            found.append(link)
    return found


def test_links_lead_somewhere() -> None:
    every = [*pages(), ROOT / "docs" / "schemas" / "README.md"]
    assert [(page.name, found) for page in every if (found := broken(page))] == []


def test_each_make_target_exists() -> None:
    known = {*_TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8"))}
    named = {(page.name, target) for page in pages() for target in _MAKE.findall(page.read_text(encoding="utf-8"))}
    assert [pair for pair in sorted(named) if pair[1] not in known] == []
