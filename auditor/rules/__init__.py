"""The rules of an audit, written out: nothing scans, nothing registers itself."""

from __future__ import annotations

from typing import Final

from auditor.rules import b01, b02, b03, b04, e01, i03, k01, m01, o01, o02, o03, o04, o05, o07, o08, o09, o10, o11
from auditor.rules.interface import Rule

RULES: Final[tuple[Rule, ...]] = (
    o01.check,
    o02.check,
    o03.check,
    o04.check,
    o05.check,
    o07.check,
    o08.check,
    o09.check,
    o10.check,
    o11.check,
    e01.check,
    m01.check,
    i03.check,
    k01.check,
    b01.check,
    b02.check,
    b03.check,
    b04.check,
)
"""In the order of their groups: objects' ACLs and owners, encryption, metadata, integrity, keys, the bucket."""
