"""Look up digests for a whole listing: by one pass over the ledger in key order, or by questions, whichever costs less.

An audit asks about its objects in the order of the listing. A ledger that can be read in this order need not be asked
about each object.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from auditor.model.object import AnyVersion

Ask = Callable[[Sequence[AnyVersion], Sequence[str]], Awaitable[list[Mapping[str, str]]]]
"""A function that looks up object versions one by one, in any order, as DigestStore.known() does for one bucket."""


class OrderedReader(Protocol):
    """Looks up the digests of one bucket's object versions, batch by batch, in the order of S3's listing.

    Raises errors.LedgerError if the ledger cannot be used. The call can then be repeated.
    """

    async def known(self, refs: Sequence[AnyVersion], algorithms: Sequence[str]) -> list[Mapping[str, str]]:
        """Return the recorded digests of each object version, in order, as DigestStore.known() does.

        Every digest in the answer was in the ledger at some time since the reader was made. A digest that was recorded
        since then may be missing. A batch out of order is answered too, but costs more.
        """
        ...

    async def close(self) -> None:
        """End the pass over the ledger, if one is under way. The reader can be used again."""
        ...


class PassChoice:
    """Chooses between a pass over the ledger and questions, batch by batch.

    A pass that has read many rows for few objects is not tried again for the next objects; their number doubles with
    each such pass, so that a ledger with many more objects than the listing is not passed over in vain.

    first: number of objects that are asked about before the first pass. pause: number of objects that are asked about
    after the first pass in vain. most: the limit up to which that number doubles.
    """

    def __init__(self, *, first: int, pause: int, most: int) -> None:
        self._left = first
        self._first_pause = self._pause = pause
        self._most = most

    def passes(self, objects: int) -> bool:
        """Return True to begin a pass with the next `objects` objects, False to ask about each of them."""
        if self._left <= 0:
            return True
        self._left -= objects
        return False

    def in_vain(self, answered: int) -> None:
        """Ask about the next objects: the pass has read too many rows. answered: number of objects it has answered."""
        self._pause = self._first_pause if answered >= self._pause else min(2 * self._pause, self._most)
        self._left = self._pause
