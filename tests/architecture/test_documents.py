"""The generated documents are in step with the code."""

from __future__ import annotations

import re
import tomllib

from auditor.cli.demo.check import DAMAGED
from auditor.cli.demo.plants import PLANTED
from auditor.config.file import read
from auditor.config.layers import resolve
from tests.support.paths import ROOT
from tools.documents import PAGES


def test_each_page_is_what_the_code_says() -> None:
    stale = [name for name, made in PAGES.items() if (ROOT / name).read_text(encoding="utf-8") != made()]
    assert not stale, f"run make docs: {stale}"


def test_the_configuration_page_shows_a_file_that_works() -> None:
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    example = page.partition("```toml\n")[2].partition("```")[0]
    layer, tables = read(tomllib.loads(example), "auditor.toml")
    settings = resolve([layer], tables)
    assert settings.rules["M01"]["required"] == ["owner", "retention"]


def test_the_page_of_the_demo_shows_the_problems_that_it_plants() -> None:
    shown = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    for planted in (*PLANTED, *DAMAGED):
        assert planted.description in shown
    assert f"{len(PLANTED)} of {len(PLANTED)} planted problems found" in shown


def test_the_first_screen_of_the_readme_says_where_it_never_ran() -> None:
    first = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:15]
    assert any("It has never run on AWS itself" in line for line in first)


def test_nothing_tells_to_install_a_name_that_nobody_owns() -> None:
    places = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("auditor/**/*.py")]
    assert [str(path) for path in places if re.search(r"(?<!\./)s3-auditor\[", path.read_text(encoding="utf-8"))] == []
