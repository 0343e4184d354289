"""Keep the price of a run's calls below a limit in dollars (--max-cost)."""

from __future__ import annotations

from typing import Final

from auditor.s3.prices import Prices, in_dollars, in_pico

MAX_COST: Final = "MaxCost"
"""The error code of a call that the limit does not allow."""
_OF_OBJECTS: Final = frozenset({"acl", "head", "get"})
"""The kinds of calls that have the price of the object's storage class. All others count as LIST."""


class CostBudget:
    """Counts the price of each call that a run sends, retries included, against a limit.

    limit: in dollars. reserved: the price, in picodollars, of all calls that the objects in flight may need.
    """

    def __init__(self, limit: float, prices: Prices) -> None:
        self._prices = prices
        self._left = in_pico(limit)
        self.reserved = 0

    @property
    def left(self) -> float:
        """The dollars that may still be spent."""
        return in_dollars(max(0, self._left))

    @property
    def short(self) -> bool:
        """True if less is left than the objects in flight may need."""
        return self._left < self.reserved

    def least(self, calls: int) -> float:
        """Return the dollars that one page and so many calls for one object cost at the most."""
        return in_dollars(self._prices.list + calls * self._prices.dearest)

    def price(self, kind: str, storage_class: str) -> int:
        """Return the price of a call in picodollars. kind: the group in which the caller counts it."""
        return self._prices.of_object_call(storage_class) if kind in _OF_OBJECTS else self._prices.list

    def reserve(self, calls: int, storage_class: str) -> None:
        """Set the price of so many calls for an object aside; a negative number frees it."""
        self.reserved += calls * self._prices.of_object_call(storage_class)

    def allows(self, kind: str, storage_class: str) -> bool:
        """True if this call may be sent. A listing call has to leave the price of the objects in flight."""
        reserved = self.reserved if kind == "list" else 0
        return self._left >= self.price(kind, storage_class) + reserved

    def spend(self, kind: str, storage_class: str) -> None:
        self._left -= self.price(kind, storage_class)
