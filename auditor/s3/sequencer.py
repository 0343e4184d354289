"""Order S3's events on one object key by their sequencers."""

from __future__ import annotations

from typing import Final

MAX_LENGTH: Final = 64

SEQUENCER: Final = rf"[0-9A-Fa-f]{{1,{MAX_LENGTH}}}"
"""A pattern: 1 to 64 hexadecimal digits. S3's sequencers have 16 to 18."""


def sort_key(sequencer: str) -> str:
    """Return a text that sorts in the order of the events. It is equal for two spellings of one sequencer.

    S3's rule: pad the shorter sequencer with zeros on the right, then compare as text (S3 User Guide,
    notification-content-structure). Case does not matter. Sequencers of different keys cannot be compared.
    """
    return sequencer.upper().rstrip("0")


def newer(one: str, other: str) -> bool:
    """True if the event with the sequencer `one` is later than the event with `other`; False also if the two are
    equal.
    """
    return sort_key(one) > sort_key(other)
