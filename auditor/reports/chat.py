"""Write an alert in the schema of custom notifications, which Amazon Q Developer in chat applications (AWS Chatbot)
shows in Slack and Microsoft Teams.

Markdown differs between the two. A quoted text therefore stands in a code span, and has no character that either of
them gives a meaning: such characters are percent-encoded. So no prefix mentions anyone, links, or ends its span.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any, Final

from auditor.model.alert import Alert, Quoted
from auditor.reports.alert_text import MOST_BYTES, fitted, phrase_text, section_lines
from auditor.text import shorten

MOST_TITLE: Final = 250
MOST_DESCRIPTION: Final = 4_000
"""Largest numbers of characters. The schema takes 250 and 8,000 (administrator guide, "Custom notifications")."""

_CUTS: Final = (3_000, 1_000)
"""Largest numbers of characters of a quoted text: the second one, where a message does not fit with the first."""
_PLAIN: Final = frozenset(" /._-=+,;:'\"(){}?!$…")
"""Characters besides letters and digits of any script that mean nothing in a code span."""
_LINK: Final = re.compile(r"(?<!\bs3)(?<!\bS3)://")
"""The middle of an address that a chat could turn into a link. s3:// is none."""


def chat_message(alert: Alert) -> str:
    """Return the message as JSON. Items of lists are left out, and counted, until it has at most MOST_BYTES bytes."""
    written = ""
    for longest in _CUTS:
        written = fitted(alert, partial(_message, longest=longest), _fits)
        if _fits(written):
            break
    return written


def _fits(message: str) -> bool:
    content = json.loads(message)["content"]
    return len(message.encode()) <= MOST_BYTES and len(content["description"]) <= MOST_DESCRIPTION


def _message(alert: Alert, longest: int) -> str:
    show = partial(_span, longest=longest)
    lines: list[str] = []
    for section in alert.sections:
        if lines:
            lines.append("")
        lines += section_lines(section, show, "• ")
    content = {
        "textType": "client-markdown",
        "title": shorten(_harmless(phrase_text(alert.title)), MOST_TITLE),
        "description": "\n".join(lines),
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
