"""The prices of S3's requests and reports: the table prices.toml, in which the user may replace single prices."""

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
