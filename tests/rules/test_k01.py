"""K01's quick test passes no key that holds a risk."""

from __future__ import annotations

from itertools import product
from typing import Final

from auditor.model.object import ObjectRef
from auditor.rules.keys.k01_risky_name import RISKS, check

LAST: Final = 0x2FFF
"""Well beyond the last character that RISKS names."""


def test_no_key_that_is_a_risk_is_passed() -> None:
    chars = (shape.format(chr(code)) for shape in ("{}k", "k/{}/k", "k{}") for code in range(LAST + 1))
    befores, afters = ("", "a", "/", "\\", "a/", "a\\", "ü/"), ("", "a", "/", "\\", "/a", "\\a")
    for key in (*chars, *(f"{before}..{after}" for before, after in product(befores, afters))):
        hit = any(check.check(ObjectRef(key, "e", 1, "2026-01-02T03:04:05Z")))
        assert hit == any(risk.search(key) for risk, _ in RISKS), key
