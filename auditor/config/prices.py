"""Read [prices] of auditor.toml: prices of requests that replace those of the list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from auditor.config.toml_tables import read_table
from auditor.model.toml_forms import form
from auditor.s3.prices import REQUESTS, RETRIEVAL

PRICES: Final = "prices"
_CLASS: Final = "[A-Z][A-Z0-9_]{0,39}"
_Class = Annotated[str, form("use a storage class like STANDARD_IA", _CLASS)]
_FIX: Final = f"use {', '.join((*REQUESTS, RETRIEVAL))} or a storage class like STANDARD_IA"
_Name = Annotated[str, form(_FIX, f"{'|'.join(REQUESTS)}|{_CLASS}")]
_OfRequests = Annotated[float, form("give dollars for each 1,000 requests, from 0 to 1,000", quote=True, ge=0, le=1000)]
_OfBytes = Annotated[float, form("give dollars for each GB, from 0 to 1,000", quote=True, ge=0, le=1000)]


def read_prices(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Read the table `prices`. name: of the file, for messages. Raises ConfigError."""
    requests = {key: price for key, price in table.items() if key != RETRIEVAL}
    found: dict[str, Any] = {**read_table(requests, dict[_Name, _OfRequests], f"{name}: [{PRICES}]")}
    if RETRIEVAL in table:
        found[RETRIEVAL] = read_table(table[RETRIEVAL], dict[_Class, _OfBytes], f"{name}: [{PRICES}.{RETRIEVAL}]")
    return found
