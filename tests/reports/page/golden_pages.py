"""The goldens of pages: the words of two rich pages, in the lines of their templates, and the places of their links.

`make goldens` writes them anew, and `git diff` shows what changes for a reader.
"""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from auditor.model.version import VERSION
from auditor.reports.page.index import index_page
from tests.support.samples.index_pages import ESTATE, estate_entries
from tests.support.samples.pages import rich_page
from tests.support.samples.reports import audit_page, print_index

PLACE: Final = Path(__file__).parent / "goldens"
NAMES: Final = ("audit", "index")


class _Words(HTMLParser):
    """The words of a page; a link to another page has its place in brackets before its words."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href") or "#"
        self.text += f" [{href}] " if not href.startswith("#") else " "

    def handle_data(self, data: str) -> None:
        if self.cdata_elem is None:  # neither a script nor a style
            self.text += f" {data}"


def golden(name: str) -> Path:
    """Return the file with the expected words of a page."""
    return PLACE / f"{name}.txt"


def made(name: str) -> bytes:
    """Return the words of a page, without the auditor's version."""
    words = _Words()
    index = index_page(estate_entries(3), "s3://acme-reports/audits", [ESTATE])
    words.feed(audit_page(rich_page()) if name == "audit" else print_index(index))
    lines = (" ".join(line.split()) for line in words.text.splitlines())
    return "".join(f"{line}\n" for line in lines if line).replace(f"auditor {VERSION}", "auditor VERSION").encode()


def main() -> None:
    for name in NAMES:
        golden(name).write_bytes(made(name))


if __name__ == "__main__":
    main()
