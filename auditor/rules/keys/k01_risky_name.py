"""K01: the key is risky for the tools that handle it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from auditor.model.object import ObjectRef
from auditor.rules.base import Hit, Severity, rule

RISKS: Final = (
    (re.compile(r"[\r\n]"), "holds a line break"),
    (re.compile(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]"), "holds a control character"),
    (re.compile(r"(?:\A|[/\\])\.\.(?:[/\\]|\Z)"), "steps up to a parent folder"),
    (re.compile(r"\A/"), "begins with a slash"),
    (re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"), "contains a text-direction control"),
    (re.compile(r"\A[=+\-@\t\r]"), "begins like a spreadsheet formula"),
)
"""The risks of a key: for each, a pattern and the words for a key that matches. The direction controls are the
characters with Unicode's property Bidi_Control.
"""
_FIRST: Final = frozenset("/=+-@")


def _is_plain(key: str) -> bool:
    """True if no pattern of RISKS can match. The test is quick, and nearly all keys pass it."""
    return key.isascii() and key.isprintable() and ".." not in key and key[:1] not in _FIRST


@rule("K01", "key-risky", Severity.LOW, reads=("ref",))
def check(ref: ObjectRef) -> Iterator[Hit]:
    """
    Why: S3 takes any key, but the next shell, sync tool, log viewer or spreadsheet may execute or obey it.
    Flagged: control characters, CR or LF; a segment `..`, between backslashes too; a leading `/`; text-direction
        controls, which make one name look like another; a first character `=`, `+`, `-`, `@`, tab or CR.
    Not flagged: `//`, spaces, quotes, markup and letters of any script, which are harmless as data; two dots within a
        name; a formula character that is not the key's first.
    Blind to: letters that look alike, zero-width characters, line separators other than CR and LF.
    Fix: copy the object to a plain key and delete this one; refuse such keys in the program that makes them.
    """
    if _is_plain(ref.key):
        return
    risks = [words for risk, words in RISKS if risk.search(ref.key)]
    if risks:
        yield Hit(f"its key {', '.join(risks)}")
