"""Cut the keys of a target into ranges of about the same number of keys, by listing a page here and there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from auditor.audit.ranges.pieces import KeyPiece, ListKeys, PieceFinder
from auditor.audit.ranges.rounds import CountedListing, PieceRounds, call_budget

PAGE: Final = 1000
"""Number of keys on a page of S3's listing."""
Cut = tuple[str, int]
"""The last key of a range, and the number of keys up to it."""


class KeyCuts(Struct, frozen=True):
    """The ends of all ranges but the last one, in order. keys: number of all keys. exact: False if the numbers are
    estimates.
    """

    cuts: tuple[Cut, ...]
    keys: int
    exact: bool


async def find_cuts(
    listing: ListKeys,
    ranges: int,
    after: str | None,
    upto: str | None,
    *,
    page: int = PAGE,
    most: int | None = None,
    whole: bool = True,
    progress: Callable[[float], None] = lambda keys: None,
) -> KeyCuts:
    """Return cuts for a number of ranges of the keys after one text, up to another one; None: no limit.

    Each cut is a key of the bucket. The ranges between the cuts cover all keys, whatever the estimates are worth: the
    estimates only decide how equal the ranges are. page: number of keys in a page of the listing. most: largest number
    of calls; None for that of call_budget(), which none exceeds. whole: True if all keys may be read, where the calls
    suffice. progress: called with the estimated number of all keys so far.

    Raises what the first calls raise. If a later call fails, the ranges are cut by the keys that are known.
    """
    counted = CountedListing(listing)
    finder = PieceFinder(counted, page)
    first = await finder.find(after, upto)
    if first is None:
        return KeyCuts((), 0, True)
    budget = call_budget(ranges) if most is None else min(most, call_budget(ranges))
    rounds = PieceRounds(first, finder, counted, ranges, left=budget - counted.calls, whole=whole)
    await rounds.run(progress)
    sizes = rounds.sizes
    cuts = increasing(_cuts(rounds.pieces, sizes, ranges))
    return KeyCuts(tuple(cuts), round(sum(sizes)), all(piece.whole for piece in rounds.pieces))


async def exact_cuts(
    listing: ListKeys, ranges: int, after: str | None, upto: str | None, *, pages: int
) -> KeyCuts | None:
    """Return cuts that are equal to one key, by listing all keys page by page; None if so many pages do not suffice.

    For few keys that takes less time than find_cuts(), whose calls wait for each other.
    """
    keys: list[str] = []
    for _ in range(pages):
        found = await listing(keys[-1] if keys else after, PAGE)
        inside = [key for key in found.keys if upto is None or key <= upto]
        keys += inside
        if not found.more or len(inside) < len(found.keys):
            ends = sorted({len(keys) * number // ranges for number in range(1, ranges)} - {0})
            return KeyCuts(tuple(increasing((keys[end - 1], end) for end in ends)), len(keys), True)
        if not inside:
            break
    return None


def increasing(cuts: Iterable[Cut]) -> Iterator[Cut]:
    """Leave out the cuts whose key is not after that of the cut before."""
    last: str | None = None
    for key, number in cuts:
        if last is None or key > last:
            yield key, number
            last = key


def _cuts(pieces: Sequence[KeyPiece], sizes: Sequence[float], ranges: int) -> Iterator[Cut]:
    """Yield the known key that is nearest to the end of each range but the last."""
    total, done, number = sum(sizes), 0.0, 1
    for at, (piece, size) in enumerate(zip(pieces, sizes, strict=True)):
        while number < ranges and done + size >= total * number / ranges:
            wanted = total * number / ranges - done
            if piece.whole:
                known, key = piece.key_near(wanted)
                yield key, round(done + known)
            elif wanted > size / 2 and at + 1 < len(pieces):
                yield pieces[at + 1].first, round(done + size)
            else:
                yield piece.first, round(done)
            number += 1
        done += size
