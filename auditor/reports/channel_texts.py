"""Write an alert in the form of each channel: plain text for e-mail, and the schema of custom notifications, which
Amazon Q Developer in chat applications (AWS Chatbot) shows in Slack and Microsoft Teams. And the common part of events.

Markdown differs between the chats. A quoted text therefore stands in a code span, and has no character that either of
them gives a meaning: such characters are percent-encoded. So no prefix mentions anyone, links, or ends its span.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from auditor.model.alert import SHORT, Alert, AlertSection, Quoted
from auditor.model.target import Target
from auditor.text import shorten, visible

FORM: Final = 1
"""Version of the form of an event's detail."""
MOST_BYTES: Final = 8_000
"""Largest size of an alert's message in bytes of UTF-8. SNS takes 262,144 (SNS API: Publish)."""
_LONGEST_SUBJECT: Final = 99
"""SNS takes fewer than 100 ASCII characters, without a line break (SNS API: Publish)."""
MOST_TITLE: Final = 250
MOST_DESCRIPTION: Final = 4_000
"""Largest numbers of characters. The schema takes 250 and 8,000 (administrator guide, "Custom notifications")."""

_CUTS: Final = (3_000, 1_000)
"""Largest numbers of characters of a quoted text: the second one, where a message does not fit with the first."""
_PLAIN: Final = frozenset(" /._-=+,;:'\"(){}?!$…")
"""Characters besides letters and digits of any script that mean nothing in a code span."""
_LINK: Final = re.compile(r"(?<!\bs3)(?<!\bS3)://")
"""The middle of an address that a chat could turn into a link. s3:// is none."""

Show = Callable[[Quoted], str]
"""A function that escapes and shortens a quoted text for one form of alerts."""


def subject_of(alert: Alert) -> str:
    """Return the subject of the message: printable ASCII, at most 99 characters."""
    return shorten(ascii(_line(alert.title))[1:-1], _LONGEST_SUBJECT - 2).replace("…", "...")


def text_of(alert: Alert) -> str:
    """Return the message. Items are left out, and counted, until it has at most MOST_BYTES bytes."""
    text = _fitted(alert, _text, lambda text: len(text.encode()) <= MOST_BYTES)
    return text.encode()[:MOST_BYTES].decode(errors="ignore")


def chat_message(alert: Alert) -> str:
    """Return the message as JSON. Items of lists are left out, and counted, until it has at most MOST_BYTES bytes."""
    written = ""
    for longest in _CUTS:
        written = _fitted(alert, partial(_message, longest=longest), _fits)
        if _fits(written):
            break
    return written


def event_detail(run: str, target: Target, report: str, reasons: Sequence[str]) -> dict[str, Any]:
    """Return the part of an event's detail that audits and verifications have in common.

    report: the address of the report. reasons: the reasons for an alert, in words; () if the run is quiet. The keys of
    a range are left out.
    """
    named = {name: getattr(target, name) for name in ("bucket", "prefix", "versions", "whole")}
    return {"v": FORM, "run": run, "target": named, "report": report, "alert": bool(reasons), "reasons": list(reasons)}


def short(text: str) -> str:
    """Return the text of a server, such as an error code, printable and shortened."""
    return shorten(visible(text), SHORT)


def _fitted(alert: Alert, write: Callable[[Alert], str], fits: Callable[[str], bool]) -> str:
    """Return write(alert), with so few items in its lists that it fits."""
    while not fits(written := write(alert)) and any(section.items for section in alert.sections):
        sections = list(alert.sections)
        longest = max(range(len(sections)), key=lambda index: len(sections[index].items))
        one = sections[longest]
        sections[longest] = replace(one, items=one.items[:-1], more=one.more + 1)
        alert = replace(alert, sections=tuple(sections))
    return written


def _shown(quoted: Quoted) -> str:
    return shorten(visible(quoted.text[: quoted.most + 1]), quoted.most)


def _line(phrase: Iterable[str | Quoted], show: Show = _shown) -> str:
    return "".join(part if isinstance(part, str) else show(part) for part in phrase)


def _lines(section: AlertSection, show: Show, bullet: str) -> Iterator[str]:
    """Yield a section as lines: its sentence, its items, and the number of those that are left out."""
    yield _line(section.heading, show)
    yield from (f"{bullet}{_line(item, show)}" for item in section.items)
    if section.more:
        yield f"{bullet}and {section.more:,} more {section.noun}{'' if section.more == 1 else 's'}"


def _text(alert: Alert) -> str:
    each = ("\n".join(["", *_lines(one, _shown, "- ")][not one.items :]) for one in alert.sections)
    return "\n".join(each).removeprefix("\n")


def _fits(message: str) -> bool:
    description = json.loads(message)["content"]["description"]
    return len(message.encode()) <= MOST_BYTES and len(description) <= MOST_DESCRIPTION


def _message(alert: Alert, longest: int) -> str:
    show = partial(_span, longest=longest)
    content = {
        "textType": "client-markdown",
        "title": shorten(_harmless(_line(alert.title)), MOST_TITLE),
        "description": "\n\n".join("\n".join(_lines(section, show, "• ")) for section in alert.sections),
    }
    metadata: dict[str, Any] = {"eventType": "s3-audit", "enableCustomActions": False}
    if alert.bucket is not None and alert.run is not None:
        metadata["additionalContext"] = {"bucket": alert.bucket, "run": alert.run}
    whole = {"version": "1.0", "source": "custom", "content": content, "metadata": metadata}
    return json.dumps(whole, ensure_ascii=False)


def _span(quoted: Quoted, longest: int) -> str:
    most = min(quoted.most, longest)
    return f"`{shorten(_harmless(quoted.text[: most + 1]), most) or ' '}`"


def _harmless(text: str) -> str:
    """Percent-encode all characters of the text that a chat could give a meaning, and `%`."""
    shown = "".join(one if one.isalnum() or one in _PLAIN else _encoded(one) for one in text)
    return _LINK.sub("%3A//", shown)


def _encoded(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode(errors="replace"))
