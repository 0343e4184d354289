"""Take the pictures of the page in docs/: `make pictures`. The run on them is made up."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

from tests.support.samples.pages import rich_page
from tests.support.samples.reports import audit_page

DOCS: Final = Path(__file__).parents[2] / "docs"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "report.html"
        page_file.write_text(audit_page(rich_page()), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, width, height in (("report.png", 1180, 1640), ("report-phone.png", 390, 1500)):
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
            page.goto(page_file.as_uri())
            page.screenshot(path=DOCS / name)
        browser.close()


if __name__ == "__main__":
    main()
