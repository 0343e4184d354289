"""Pages of runs in headless Chromium, opened from files. The suite is skipped without playwright and chromium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

pytest.importorskip("playwright", reason="`make test-browser` has it in an environment of its own")

from playwright.sync_api import sync_playwright

from tests.browser.written import written_pages

AXE: Final = Path(__file__).parent / "node_modules" / "axe-core" / "axe.min.js"
SIZES: Final = {"desktop": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}


@dataclass
class Opened:
    """An open page, and all that went wrong on it or was asked for by it."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def refuse(self, dialog: Any) -> None:
        self.complaints.append(dialog.message)
        dialog.dismiss()

    def axe(self) -> list[str]:
        """Return the violations that axe-core finds, with the elements that have them."""
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate("async () => (await axe.run(document, {resultTypes: ['violations']})).violations")
        return [f"{one['id']}: {[node['html'][:120] for node in one['nodes'][:3]]}" for one in found]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The files of the pages, by name."""
    return written_pages(tmp_path_factory.mktemp("pages"))


class Opener:
    """Opens pages in contexts of their own, and closes them."""

    def __init__(self, browser: Any, pages: dict[str, Path]) -> None:
        self._browser = browser
        self._pages = pages
        self._contexts: list[Any] = []

    def __call__(self, name: str, *, size: str = "desktop", script: bool = True, scheme: str = "light") -> Opened:
        context = self._browser.new_context(
            viewport=SIZES[size], color_scheme=scheme, java_script_enabled=script, accept_downloads=True
        )
        self._contexts.append(context)
        context.set_default_timeout(15_000)
        opened = Opened(context.new_page())
        opened.page.on("console", lambda message: opened.complaints.append(message.text))
        opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.page.on("dialog", opened.refuse)
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.goto(self._pages[name].as_uri())
        return opened

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def opener(chromium: Any, pages: dict[str, Path]) -> Iterator[Opener]:
    made = Opener(chromium, pages)
    yield made
    made.close()
