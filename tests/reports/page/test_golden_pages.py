"""The rich pages have the expected words."""

from __future__ import annotations

import pytest

from tests.reports.page.golden_pages import NAMES, golden, made
from tests.support.golden_texts import difference


@pytest.mark.parametrize("name", NAMES)
def test_the_page_has_the_expected_words(name: str) -> None:
    assert difference(golden(name).read_bytes(), made(name)) is None, "see `make goldens` and git diff"
