"""The order of S3's events of one key, as their sequencers tell it."""

from __future__ import annotations

import re
from typing import Final

MAX_LENGTH: Final = 64

_HEXADECIMAL: Final = re.compile(r"[0-9A-Fa-f]+\Z")


def is_sequencer(text: str) -> bool:
    """Whether it is 1 to 64 hexadecimal digits; S3's have 16 to 18."""
    return len(text) <= MAX_LENGTH and _HEXADECIMAL.match(text) is not None


def sort_key(sequencer: str) -> str:
    """What sorts as the events happened; equal for two spellings of one sequencer.

    S3's rule: pad the shorter one with zeros on the right, then compare as text (S3 User Guide,
    notification-content-structure). Upper and lower case are one. Meaningless between different keys.
    """
    return sequencer.upper().rstrip("0")


def newer(one: str, other: str) -> bool:
    """Whether `one` happened after `other`; False when they are the same event."""
    return sort_key(one) > sort_key(other)
