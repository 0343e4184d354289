"""Nothing in a key can hide, end the line or turn it around."""

from __future__ import annotations

from auditor.text import harmless, shorten, visible, width
from tests.support.odd_keys import ODD_KEYS

SHOWN = {
    "plain/café 📦.txt": "plain/café 📦.txt",
    "a\nb\r\t": r"a\nb\r\t",
    "a\x1b[31m\x7f\x85": r"a\x1b[31m\x7f\x85",
    "\u202egpj.exe\u2066": r"\u202egpj.exe\u2066",
    "zero\u200bwidth\ufeff\u00a0": r"zero\u200bwidth\ufeff\xa0",
    "line\u2028end": r"line\u2028end",
    "\udcff": r"\udcff",
    "\U000e0041": r"\U000e0041",
    "a\\nb": r"a\\nb",
}


def test_shown_as_it_is_or_escaped() -> None:
    assert {text: visible(text) for text in SHOWN} == SHOWN


def test_odd_keys_print_and_stay_apart() -> None:
    shown = {key: visible(key) for key in ODD_KEYS.values()}
    assert [key for key, text in shown.items() if not text.isprintable() or harmless(text) != text] == []
    assert len(set(shown.values())) == len(shown)


def test_sentence_keeps_its_backslashes() -> None:
    assert harmless("keys after a\\nb\x07") == "keys after a\\nb\\x07"


def test_wide_and_combining_characters_count_as_they_show() -> None:
    assert width("漢字") == 4
    assert width("cafe\u0301") == 4
    assert shorten("漢字漢字", 8) == "漢字漢字"
    assert shorten("漢字漢字", 7) == "漢字漢…"
    assert shorten("漢字漢字", 6) == "漢字…"
