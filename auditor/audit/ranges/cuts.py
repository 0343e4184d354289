"""Cut the keys of a target into ranges of about the same number of keys, by listing pages of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from auditor.aio.groups import together
from auditor.audit.ranges.pieces import KeyPiece
from auditor.errors import BucketError, CallFailed, ListingError
from auditor.s3.calls import MAX_CALLS

PAGE: Final = 1000
"""Number of keys on a page of S3's listing."""
AT_ONCE: Final = 16
"""Number of pages that are listed side by side."""
_CALLS: Final = 160
"""Number of calls that a plan may send for any number of ranges."""
_CALLS_EACH: Final = 128
"""Number of calls that a plan may send for each range beyond these. For 64 ranges it sends 8,352 calls at most."""
_FEW: Final = 8
"""Number of pages that are read one after the other: to divide so few keys takes more calls than it saves time."""
_FINENESS: Final = 16
"""Number of pieces for each range, at least, from which the cuts are chosen."""

Cut = tuple[str, int]
"""The last key of a range, and the number of keys up to it."""


class KeysFound(Struct, frozen=True):
    """Some keys in order, a key twice where it has two versions. more: True if there are further keys."""

    keys: Sequence[str]
    more: bool


ListKeys = Callable[[str | None, int], Awaitable[KeysFound]]
"""Lists keys after a text, at most so many; None: from the first key on."""


class KeyCuts(Struct, frozen=True):
    """The ends of all ranges but the last one, in order. keys: number of all keys. exact: False if the numbers are
    estimates.
    """

    cuts: tuple[Cut, ...]
    keys: int
    exact: bool


def call_budget(ranges: int) -> int:
    """Return the largest number of calls that a plan of so many ranges may send."""
    return _CALLS + _CALLS_EACH * ranges


async def find_cuts(
    listing: ListKeys,
    ranges: int,
    after: str | None,
    upto: str | None,
    *,
    page: int = PAGE,
    most: int | None = None,
    progress: Callable[[float], None] = lambda keys: None,
) -> KeyCuts:
    """Return cuts for a number of ranges of the keys after one text, up to another one; None: no limit.

    Each cut is a key of the bucket. The ranges between the cuts cover all keys, whatever the estimates are worth: the
    estimates only decide how equal the ranges are. page: number of keys in a page of the listing. most: largest number
    of calls; None for that of call_budget(), which none exceeds. progress: called with the estimated number of all keys
    so far.

    Raises what the first call raises, and ListingError for a listing that cannot be right. If a later call fails, or
    the calls are spent, the ranges are cut by the keys that are known.
    """
    budget = call_budget(ranges)
    search = _Bisection(listing, ranges, page, budget if most is None else min(most, budget))
    await search.run(after, upto, progress)
    pieces = sorted(search.pieces, key=lambda piece: piece.first)
    exact = not search.ended and all(piece.whole for piece in pieces)
    return KeyCuts(tuple(increasing(_cuts(pieces, ranges))), round(sum(piece.size for piece in pieces)), exact)


class _Bisection:
    """Divides the keys into pieces, and lists pages of them. left: number of calls that it may send. ended: True if
    there was no call left, or one failed.
    """

    def __init__(self, listing: ListKeys, ranges: int, page: int, left: int) -> None:
        self.pieces: list[KeyPiece] = []
        self.ended = False
        self._listing = listing
        self._ranges = ranges
        self._page = page
        self._left = left

    @property
    def _few(self) -> bool:
        """True if few keys are seen so far."""
        return sum(piece.count for piece in self.pieces) < _FEW * self._page

    async def run(self, after: str | None, upto: str | None, progress: Callable[[float], None]) -> None:
        """List pages until all keys are seen, the pieces are small enough, the calls are spent, or one fails."""
        keys, more = await self._keys(after, upto)
        if keys:
            self.pieces.append(KeyPiece.of(upto, keys, more=more, every=True))
        while not self.ended and (chosen := self._chosen()):
            await together(self._see(piece, text) for piece, text in chosen)
            progress(sum(piece.size for piece in self.pieces))

    def _chosen(self) -> list[tuple[KeyPiece, str]]:
        """Return the pieces to list from next, each with the text after which: its last key seen, or its middle."""
        unread = sorted((piece for piece in self.pieces if not piece.whole), key=lambda piece: -piece.unseen)
        if sum(piece.unseen / self._page + 1 for piece in unread) <= self._left:
            return self._read_on(unread)
        small = sum(piece.size for piece in self.pieces) / (self._ranges * _FINENESS)
        return [(piece, piece.middle()) for piece in unread[:AT_ONCE] if piece.unseen > small]

    def _read_on(self, unread: Sequence[KeyPiece]) -> list[tuple[KeyPiece, str]]:
        """Read the pieces on, of which the largest come first, and divide some so that AT_ONCE can be read on."""
        free = 0 if self._few else max(0, AT_ONCE - len(unread))
        large = [piece for piece in unread[:free] if piece.unseen > _FEW * self._page]
        others = unread[len(large) : AT_ONCE]
        return [(piece, piece.middle()) for piece in large] + [(piece, piece.last) for piece in others]

    async def _see(self, piece: KeyPiece, text: str) -> None:
        """List the keys of a piece after a text. If it is not the last key seen, they are a piece of their own."""
        keys, more = await self._keys(text, piece.upto)
        if self.ended:
            return
        if text == piece.last:
            piece.add(keys, more=more, every=self._few)
            return
        if keys:
            self.pieces.append(KeyPiece.of(piece.upto, keys, more=more, every=False))
        piece.end_at(text)

    async def _keys(self, after: str | None, upto: str | None) -> tuple[Sequence[str], bool]:
        """Return a page of the keys between two texts, and whether further ones follow. Without an answer the search
        has ended.
        """
        self._left -= 1
        try:
            if self._left < 0:
                raise CallFailed("ListObjectsV2", MAX_CALLS)
            found = await self._listing(after, self._page)
        except (BucketError, CallFailed) as failure:
            spent = isinstance(failure, CallFailed) and failure.code == MAX_CALLS
            if isinstance(failure, ListingError) or not (self.pieces or spent):
                raise
            self.ended = True
            return (), False
        keys = found.keys if upto is None else [key for key in found.keys if key <= upto]
        return keys, found.more and len(keys) == len(found.keys)


def increasing(cuts: Iterable[Cut]) -> Iterator[Cut]:
    """Leave out the cuts whose key is not after that of the cut before."""
    last: str | None = None
    for key, number in cuts:
        if last is None or key > last:
            yield key, number
            last = key


def _cuts(pieces: Sequence[KeyPiece], ranges: int) -> Iterator[Cut]:
    """Yield the known key that is nearest to the end of each range but the last."""
    total, done, number = sum(piece.size for piece in pieces), 0.0, 1
    for at, piece in enumerate(pieces):
        known = [*piece.marks, *((piece.size, following.first) for following in pieces[at + 1 : at + 2])]
        while number < ranges and done + piece.size >= (end := total * number / ranges):
            keys, key = min(known, key=lambda mark: abs(done + mark[0] - end))
            if done + keys < total:
                yield key, round(done + keys)
            number += 1
        done += piece.size
