"""K01's quick test passes no key that holds a risk."""

from __future__ import annotations

from typing import Final

import pytest

from auditor.model.object import ObjectRef
from auditor.rules.keys.k01_risky_name import RISKS, check

LAST: Final = 0x2FFF
"""Well beyond the last character that RISKS names."""


def hits(key: str) -> bool:
    return any(check.check(ObjectRef(key, "e", 1, "2026-01-02T03:04:05Z")))


@pytest.mark.parametrize("shape", ["{}k", "k{}k", "k{}", "k/{}/k"])
def test_no_character_that_is_a_risk_is_passed(shape: str) -> None:
    keys = (shape.format(chr(code)) for code in range(LAST + 1))
    assert [key for key in keys if hits(key) != any(risk.search(key) for risk, _ in RISKS)] == []


@pytest.mark.parametrize("before", ["", "a", "/", "\\", "a/", "a\\", "ü/"])
@pytest.mark.parametrize("after", ["", "a", "/", "\\", "/a", "\\a"])
def test_nor_a_step_up(before: str, after: str) -> None:
    key = f"{before}..{after}"
    assert hits(key) == any(risk.search(key) for risk, _ in RISKS)
