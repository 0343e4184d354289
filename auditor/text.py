"""Make untrusted text, such as object keys, safe to print: no hidden characters, no change of text direction."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

_NAMED: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}


def visible(text: str) -> str:
    """Escape every unprintable character as Python does, and double the backslashes.

    It covers controls, line ends, bidi controls, zero-width characters, odd spaces and lone surrogates.
    """
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(map(_shown, text))


def harmless(text: str) -> str:
    """Escape as visible() does, but keep backslashes. It is for sentences that may quote results of visible()."""
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
    """Return the columns of `text` on a terminal: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def shorten(text: str, columns: int) -> str:
    """Return `text` if it is at most `columns` wide, else its beginning and `…`, together at most that wide."""
    if width(text) <= columns:
        return text
    end, room = 0, columns - 1
    while (room := room - _columns(text[end])) >= 0:
        end += 1
    return f"{text[:end]}…"


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def tallied(counts: Mapping[str, int]) -> str:
    """Return counts as text, the largest number first: `2 archived, 1 SSE-C`. The names are escaped, because they may
    come from a server.
    """
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count:,} {visible(word)}" for word, count in ordered)


def enumerated(counts: Mapping[str, int]) -> str:
    """Return counts as text: `1 new, 1,234 gone`. The order stays; the names are words of ours."""
    return ", ".join(f"{number:,} {name}" for name, number in counts.items())


def healed_rows(number: int) -> list[str]:
    """Return the phrase on damaged rows of the ledger that were written anew; [] if there are none."""
    return [f"{counted(number, 'damaged row')} of the ledger rewritten from the history"] if number else []


def counted(number: int, noun: str) -> str:
    """Return `1 object` or `1,234 objects`. noun: a noun whose plural is made by an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def likeliest(given: str, candidates: Iterable[str], alike: float = 0.6) -> str | None:
    """Return the candidate that a mistyped word is most like; None if none is. alike: the least ratio of difflib."""
    from difflib import get_close_matches  # most words are right

    found: Sequence[str] = get_close_matches(given, list(candidates), 1, alike)
    return found[0] if found else None
