"""Untrusted text, keys above all, made safe to look at: nothing hides, nothing turns the line around."""

from __future__ import annotations

import unicodedata
from typing import Final

_NAMED: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}


def visible(text: str) -> str:
    """`text` with every character that does not print as itself escaped as Python writes it, backslashes doubled.

    That covers controls, line ends, bidi controls, zero-width characters, odd spaces and lone surrogates.
    """
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(map(_shown, text))


def harmless(text: str) -> str:
    """As visible(), but leaves backslashes alone: for our own sentences, which may quote what is visible() already."""
    if text.isprintable():
        return text
    return "".join(character if character == "\\" else _shown(character) for character in text)


def _shown(character: str) -> str:
    if named := _NAMED.get(character):
        return named
    if character.isprintable():
        return character
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def width(text: str) -> int:
    """Columns that `text` takes on a terminal: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def shorten(text: str, columns: int) -> str:
    """`text` if it fits in that many columns, else its beginning and `…`."""
    if width(text) <= columns:
        return text
    kept, left = [], columns - 1
    for character in text:
        left -= _columns(character)
        if left < 0:
            break
        kept.append(character)
    return "".join(kept) + "…"


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def counted(number: int, noun: str) -> str:
    """`1 object`, `1,234 objects`. noun: one whose plural takes an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
