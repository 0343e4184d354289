"""The prices of a night: S3's requests from the auditor's own list, and those of the other services."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from auditor.s3.prices import Prices, in_dollars, prices_with

_FILE: Final = Path(__file__).with_name("prices.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of so many units in dollars. page: AWS's own page. seen: how the price was checked (prices.toml)."""

    dollars: float
    units: int
    unit: str
    page: str
    seen: str

    def of(self, number: float) -> float:
        """Return the dollars of so many units."""
        return number * self.dollars / self.units


@cache
def _document() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


def as_of() -> tuple[str, str]:
    """Return the day and the region of the prices."""
    return _document()["as_of"], _document()["region"]


@cache
def prices() -> dict[str, Price]:
    """Return the prices of prices.toml by their names."""
    return {name: Price(**value) for name, value in _document().items() if isinstance(value, dict)}


@cache
def request_prices() -> Prices:
    """Return the auditor's own list: LIST, data events, S3 Inventory, and GET, HEAD or ACL by storage class."""
    return prices_with({})


def of_lists(number: float) -> float:
    """Return the dollars of so many LIST calls."""
    return number * in_dollars(request_prices().list)


def of_inventory(objects: float) -> float:
    """Return the dollars of so many objects in reports of S3 Inventory."""
    return objects * in_dollars(request_prices().inventory)


def of_object_calls(number: float, storage_class: str) -> float:
    """Return the dollars of so many GET, HEAD or ACL calls on objects of a storage class."""
    return number * in_dollars(request_prices().of_object_call(storage_class))


def of_data_events(number: float) -> float:
    """Return the dollars of so many data events of CloudTrail."""
    return number * in_dollars(request_prices().data_event)
