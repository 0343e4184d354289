"""The kinds of objects that the page colours and marks: verdicts, and the words beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct


class Sign(Struct, frozen=True):
    """A kind of objects that the page shows with a colour and a mark: a verdict, or a word such as "accepted". name:
    name of its colour in the style sheet. mark: a character that shows the kind without the colour. words: the meaning.
    """

    name: str
    label: str
    mark: str
    words: str


EXPOSED: Final = Sign("exposed", "exposed", "●", "strangers can get in, and no exception covers it")
SHARED: Final = Sign("shared", "shared", "◆", "another party, one that you do not trust, can get in or owns it")
UNKNOWN: Final = Sign("unknown", "unknown", "?", "a fact that decides it could not be read or decided")
MASKED: Final = Sign("masked", "masked", "◐", "would be open if nothing blocked it")
DORMANT: Final = Sign(
    "dormant", "dormant", "◌", "nobody else gets in today, and a stored grant or owner may take effect again later"
)
INTENDED: Final = Sign("intended", "public by intent", "◎", "open, and an exception says why, its owner and its end")
VANISHED: Final = Sign("vanished", "vanished", "–", "deleted between the listing and the reading")
PRIVATE: Final = Sign("private", "private", "○", "none of these; see what this report cannot see")
UNDECIDED: Final = Sign("unknown", "could not be checked", "?", "its ACL or its HEAD could not be read")
CHANGED_BYTES: Final = Sign("bytes", "damaged", "✱", "the bytes are not those that were recorded")
MISSING: Final = Sign(
    "exposed", "missing", "●", "in the ledger, not in the bucket, and nobody said that it was deleted"
)

BY_VERDICT: Final = {sign.name: sign for sign in (EXPOSED, SHARED, UNKNOWN, MASKED, DORMANT, PRIVATE)}
OPEN: Final = (EXPOSED, SHARED, UNKNOWN)
NOT_PRIVATE: Final = (*OPEN, MASKED, DORMANT, INTENDED)


def held_back(numbers: Mapping[Sign, int]) -> Sign:
    """Return the sign of the page's number of objects that something holds back: masked ones, or dormant ones if no
    object is masked.
    """
    return DORMANT if numbers[DORMANT] and not numbers[MASKED] else MASKED
