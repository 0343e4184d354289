"""Merge two copies of one row of a DynamoDB ledger, of which one may have been written after the other was made.

No merge drops a digest or a verification.
"""

from __future__ import annotations

from typing import Any, Final

from auditor.ledger.base import AUDITOR, S3
from auditor.ledger.dynamodb.items import DIGESTS, Item, number, row, text

_LOOKS: Final = "_looks"
_LOOK_SEAL: Final = "_look_seal"
_OF_LOOKS: Final = (_LOOKS, _LOOK_SEAL, "_look_from", "_verified_at")
"""Ends of the names of the attributes that say when a digest was verified."""
_OF_RECORD: Final = ("", "_source", "_at", "_bytes_read", "_place", "_seal", "_s3_at", "_s3_place")
"""Ends of the names of the attributes that say how a digest was recorded. The seal covers them together."""


class CopiesDiffer(Exception):  # noqa: N818 - an answer, no error
    """Raised for two copies of a row that contradict each other.

    what: "size", or the algorithm whose digests differ.
    """

    def __init__(self, what: str) -> None:
        self.what = what


def merged(copy: Item, other: Item) -> dict[str, Any]:
    """Return the copy with all that the other copy has and it lacks. Raises CopiesDiffer.

    copy, other: items of the same row, both under the pk and sk of a table without shards.
    """
    if copy["sk"]["S"] >= DIGESTS:
        return _merged_digests(copy, other)
    newer = (number(other, "place") or 0) > (number(copy, "place") or 0)
    return dict(other if newer else copy)


def _merged_digests(copy: Item, other: Item) -> dict[str, Any]:
    found: dict[str, Any] = {**other, **copy}
    mine, theirs = row(copy), row(other)
    if mine.size != theirs.size:
        raise CopiesDiffer("size")
    for algorithm, digest in theirs.digests.items():
        if mine.digests.get(algorithm, digest) != digest:
            raise CopiesDiffer(algorithm)
        if algorithm not in mine.digests or _is_of_s3_alone(copy, other, algorithm):
            _take(found, other, algorithm, _OF_RECORD)
        if _is_continued(copy, other, algorithm):
            _take(found, other, algorithm, _OF_LOOKS)
        else:
            _take(found, copy, algorithm, _OF_LOOKS)
    return found


def _take(found: dict[str, Any], item: Item, algorithm: str, ends: tuple[str, ...]) -> None:
    """Replace the attributes of an algorithm with these ends by those of the item, or remove what the item lacks."""
    for end in ends:
        name = algorithm + end
        if name in item:
            found[name] = item[name]
        else:
            found.pop(name, None)


def _is_of_s3_alone(copy: Item, other: Item, algorithm: str) -> bool:
    """True if the copy has a digest of S3 that the other copy has from the auditor."""
    name = f"{algorithm}_source"
    return text(copy, name) == S3 and (text(other, name) or AUDITOR) == AUDITOR


def _is_continued(copy: Item, other: Item, algorithm: str) -> bool:
    """True if the verifications of the other copy begin with those of the copy, and go on.

    The first ones of the other copy may have been moved into the history; its first seal then is the copy's last one.
    """
    mine, theirs = looks(copy, algorithm), looks(other, algorithm)
    last = text(copy, algorithm + _LOOK_SEAL)
    if (text(copy, f"{algorithm}_verified_at") or "") >= (text(other, f"{algorithm}_verified_at") or ""):
        return False
    return theirs[: len(mine)] == mine or last == text(other, f"{algorithm}_look_from")


def looks(item: Item, algorithm: str) -> list[str]:
    """Return the verifications of a digest that its item has, each as a text (lines.write_look)."""
    return [str(one["S"]) for one in item.get(algorithm + _LOOKS, {}).get("L", [])]
