"""The prices of S3's requests and reports: the table prices.toml, in which the user may replace single prices, and
the limit of the price of a run's calls (--max-cost).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, toml

_FILE: Final = Path(__file__).with_name("prices.toml")
_PICO: Final = 10**12
"""Prices are whole numbers of millionths of a millionth of a dollar, so that sums of billions are exact."""
REQUESTS: Final = ("list", "data_event", "inventory")
"""The prices that do not depend on the storage class."""
RETRIEVAL: Final = "retrieval"
"""The table of the prices of bytes, by storage class."""


class Prices(Struct, frozen=True, kw_only=True):
    """The prices of requests, each in picodollars. inventory: of one object in a report of S3 Inventory.

    as_of, region: the day and the region of the list prices. replaced: names of the prices that the user replaced.
    retrieval: of a GB, by storage class.
    """

    as_of: str
    region: str
    list: int
    data_event: int
    inventory: int
    get: Mapping[str, int]
    retrieval: Mapping[str, int]
    replaced: tuple[str, ...] = ()

    @property
    def dearest(self) -> int:
        """The price of a GET, HEAD or ACL in the dearest storage class: an unknown class may be as dear."""
        return max(self.get.values())

    def of_object_call(self, storage_class: str) -> int:
        """Return the price of a GET, HEAD or ACL of an object. A class without a price counts as the dearest."""
        return self.get.get(storage_class, self.dearest)

    def of_bytes(self, storage_class: str, size: int) -> int:
        """Return the price of reading so many bytes of objects in a storage class, beside the requests."""
        return self.retrieval.get(storage_class, 0) * size // 10**9


def prices_with(replaced: Mapping[str, Any]) -> Prices:
    """Return the list prices, with those that the user replaced: dollars in the form of [prices] in auditor.toml."""
    document = _document()
    given = {name: value for name, value in replaced.items() if name != RETRIEVAL}
    retrieval = replaced.get(RETRIEVAL, {})
    classes = {name: value for name, value in given.items() if name not in REQUESTS}
    return Prices(
        as_of=document["as_of"],
        region=document["region"],
        list=_of_thousand(given.get("list", document["list"])),
        data_event=_of_thousand(given.get("data_event", document["data_event"])),
        inventory=_of_thousand(given.get("inventory", document["inventory"])),
        get={name: _of_thousand(value) for name, value in {**document["get"], **classes}.items()},
        retrieval={name: round(value * _PICO) for name, value in {**document[RETRIEVAL], **retrieval}.items()},
        replaced=(*sorted(given), *(f"{RETRIEVAL}.{name}" for name in sorted(retrieval))),
    )


def in_pico(dollars: float) -> int:
    """Return dollars in picodollars."""
    return round(dollars * _PICO)


def in_dollars(pico: int) -> float:
    """Return picodollars in dollars."""
    return pico / _PICO


def money(pico: int) -> str:
    """Return picodollars as text: `$12.34`, or with six decimals below ten cents."""
    dollars = in_dollars(pico)
    return f"${dollars:,.2f}" if dollars >= 0.1 or not pico else f"${dollars:.6f}"


@cache
def _document() -> Mapping[str, Any]:
    found: Mapping[str, Any] = toml.decode(_FILE.read_bytes())
    return found


def _of_thousand(dollars: float) -> int:
    return round(dollars * (_PICO // 1000))


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
