"""Write an alert as plain text for e-mail: a subject, and a message of a bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from auditor.model.alert import Alert, AlertSection, Phrase, Quoted
from auditor.text import shorten, visible

MOST_BYTES: Final = 8_000
"""Largest size of an alert's message in bytes of UTF-8. SNS takes 262,144 (SNS API: Publish)."""
_LONGEST_SUBJECT: Final = 99
"""SNS takes fewer than 100 ASCII characters, without a line break (SNS API: Publish)."""

Show = Callable[[Quoted], str]
"""A function that escapes and shortens a quoted text for one form of alerts."""


def subject_of(alert: Alert) -> str:
    """Return the subject of the message: printable ASCII, at most 99 characters."""
    return shorten(ascii(_line(alert.title, _shown))[1:-1], _LONGEST_SUBJECT - 2).replace("…", "...")


def text_of(alert: Alert) -> str:
    """Return the message. Items are left out, and counted, until it has at most MOST_BYTES bytes."""
    text = fitted(alert, _text, lambda text: len(text.encode()) <= MOST_BYTES)
    return text.encode()[:MOST_BYTES].decode(errors="ignore")


def fitted(alert: Alert, write: Callable[[Alert], str], fits: Callable[[str], bool]) -> str:
    """Return write(alert), with so few items in its lists that it fits."""
    while not fits(written := write(alert)) and any(section.items for section in alert.sections):
        longest = max(range(len(alert.sections)), key=lambda index: len(alert.sections[index].items))
        sections = list(alert.sections)
        one = sections[longest]
        sections[longest] = replace(one, items=one.items[:-1], more=one.more + 1)
        alert = replace(alert, sections=tuple(sections))
    return written


def section_lines(section: AlertSection, show: Show, bullet: str) -> list[str]:
    """Return a section as lines: its sentence, its items, and the number of those that are left out."""
    lines = [_line(section.heading, show), *(f"{bullet}{_line(item, show)}" for item in section.items)]
    if section.more:
        lines.append(f"{bullet}and {section.more:,} more {section.noun}{'' if section.more == 1 else 's'}")
    return lines


def phrase_text(phrase: Phrase) -> str:
    """Return a phrase as plain text."""
    return _line(phrase, _shown)


def _text(alert: Alert) -> str:
    lines: list[str] = []
    for section in alert.sections:
        if lines and section.items:
            lines.append("")
        lines += section_lines(section, _shown, "- ")
    return "\n".join(lines)


def _line(phrase: Iterable[str | Quoted], show: Show) -> str:
    return "".join(part if isinstance(part, str) else show(part) for part in phrase)


def _shown(quoted: Quoted) -> str:
    return shorten(visible(quoted.text[: quoted.most + 1]), quoted.most)
