"""An alert on a run: sentences and short lists, in which text from a bucket or a server is marked, for each form to
escape. And the event on a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

SHORT: Final = 120
"""Largest number of characters of a quoted text in an alert, such as a prefix."""

LONGEST: Final = 4_000
"""Largest number of characters of an error's text in an alert. The text has the restart event of each failed target."""
SOURCE: Final = "s3-auditor"
"""The source of our events on an event bus."""


class Quoted(Struct, frozen=True):
    """A text that is not ours, such as a prefix or an error code: each form of an alert escapes it in its own way.

    most: the number of characters that an alert shows of it.
    """

    text: str
    most: int = SHORT


Phrase = tuple[str | Quoted, ...]
"""One line: words of ours, and quoted text between them."""


class AlertSection(Struct, frozen=True):
    """One sentence of an alert, and the list below it. more: number of items that the list leaves out."""

    heading: Phrase
    items: tuple[Phrase, ...] = ()
    more: int = 0
    noun: str = "group"
    """The noun of an item."""


class Alert(Struct, frozen=True, kw_only=True):
    """The message on one run, or on a failed start."""

    title: Phrase
    sections: tuple[AlertSection, ...]
    bucket: str | None = None
    """The bucket of the run; None for a failure."""
    run: str | None = None
    """ID of the run; None for a failure."""


class RunEvent(Struct, frozen=True):
    """An event on a finished run, for EventBridge. kind: its detail-type. detail: a JSON object."""

    kind: str
    detail: Mapping[str, Any]


def failure_alert(noun: str, sentence: str) -> Alert:
    """Return the alert for a failed invocation of a function, or a failed command.

    noun: "audit" or "verification". sentence: the text of the error.
    """
    section = AlertSection((f"The {noun} failed: ", Quoted(sentence, LONGEST)))
    return Alert(title=(f"S3 {noun} failed",), sections=(section,))
