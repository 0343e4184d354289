"""Divide the keys of a target into pieces, round by round, until they are small enough or the calls are spent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from auditor.aio.groups import together
from auditor.audit.ranges.pieces import KeyPiece, KeysFound, ListKeys, PieceFinder
from auditor.errors import BucketError, CallFailed, ListingError

AT_ONCE: Final = 16
"""Number of pieces that are divided side by side."""
_FINENESS: Final = 6
"""Number of pieces for each range, at least, from which the cuts are chosen."""
_CALLS: Final = 160
"""Number of calls that a plan may send for any number of ranges: to find the first pieces."""
_CALLS_EACH: Final = 128
"""Number of calls that a plan may send for each range beyond these. For 64 ranges it sends 8,352 calls at most."""
_ALONE: Final = 32
"""Number of pages that are read one after the other rather than first divided into pieces."""
_SPARE: Final = 1.5
"""Ratio of the pages that reading all keys may take to those of the estimate."""

Work = Callable[[KeyPiece], Awaitable[list[KeyPiece]]]


class BudgetSpent(Exception):  # noqa: N818 - it ends the search, and is no failure
    """The calls that a plan may send are spent."""


class CountedListing:
    """Lists keys until the calls are spent, then raises BudgetSpent.

    calls: number of calls so far. left: number of further calls; None: no limit.
    """

    def __init__(self, listing: ListKeys) -> None:
        self._listing = listing
        self.calls = 0
        self.left: int | None = None

    async def __call__(self, after: str | None, count: int) -> KeysFound:
        if self.left is not None:
            if self.left <= 0:
                raise BudgetSpent
            self.left -= 1
        self.calls += 1
        return await self._listing(after, count)


def call_budget(ranges: int) -> int:
    """Return the largest number of calls that a plan of so many ranges may send."""
    return _CALLS + _CALLS_EACH * ranges


class PieceRounds:
    """Divides the first piece into more and more pieces. pieces: those so far, in order: together they are the first.

    listing: what the finder lists by. left: number of calls that the rounds may send. whole: True if all keys may be
    read, where the calls suffice.
    """

    def __init__(
        self, first: KeyPiece, finder: PieceFinder, listing: CountedListing, ranges: int, *, left: int, whole: bool
    ) -> None:
        self.pieces = [first]
        self._finder = finder
        self._listing = listing
        self._ranges = ranges
        self._whole = whole
        self._ended = False
        listing.left = left

    @property
    def sizes(self) -> list[float]:
        """The estimated number of keys of each piece."""
        return [self._finder.estimate(piece) for piece in self.pieces]

    async def run(self, progress: Callable[[float], None]) -> None:
        """Divide until the pieces are small enough, the calls are spent, or a call fails: then the pieces stay as they
        are. progress: called with the estimated number of all keys so far.
        """
        while not self._ended:
            sizes = self.sizes
            progress(sum(sizes))
            if self._readable(sizes):
                chosen, work = self._unread(), self._finder.read_on
            else:
                chosen, work = self._largest(sizes), self._finder.divide
            if not chosen:
                return
            await self._each(chosen, work)

    def _readable(self, sizes: Sequence[float]) -> bool:
        """True if all keys that are not known yet can be read with the calls that are left."""
        unread = self._unread()
        if not self._whole or not unread:
            return False
        pages = sum(sizes[at] - self.pieces[at].count for at in unread) / self._finder.page
        enough = self._listing.left is None or pages * _SPARE + len(unread) <= self._listing.left
        return enough and (pages <= _ALONE or len(self.pieces) >= AT_ONCE)

    def _unread(self) -> set[int]:
        return {at for at, piece in enumerate(self.pieces) if not piece.whole}

    def _largest(self, sizes: Sequence[float]) -> set[int]:
        """Return the places of the pieces that are too large for good cuts, the largest ones if there are many."""
        enough = sum(sizes) / (self._ranges * _FINENESS)
        found = [at for at in self._unread() if sizes[at] > enough]
        return set(sorted(found, key=lambda at: (-sizes[at], at))[:AT_ONCE])

    async def _each(self, chosen: set[int], work: Work) -> None:
        """Replace the chosen pieces by what becomes of them."""
        places = sorted(chosen)
        found = await together(self._worked(self.pieces[at], work) for at in places)
        replaced = dict(zip(places, found, strict=True))
        self.pieces = [one for at, piece in enumerate(self.pieces) for one in replaced.get(at, [piece])]

    async def _worked(self, piece: KeyPiece, work: Work) -> list[KeyPiece]:
        """Return what becomes of a piece: the piece itself if a call fails or the calls are spent. Raises ListingError
        for a listing that cannot be right.
        """
        try:
            return await work(piece.copy())
        except ListingError:
            raise
        except (BudgetSpent, BucketError, CallFailed):
            self._ended = True
            return [piece]
