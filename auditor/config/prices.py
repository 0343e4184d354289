"""Read [prices] of auditor.toml: prices of requests that replace those of the list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from auditor.errors import ConfigError
from auditor.s3.prices import REQUESTS, RETRIEVAL

PRICES: Final = "prices"
_CLASS: Final = re.compile(r"[A-Z][A-Z0-9_]{0,39}")
_MOST: Final = 1000.0
"""Largest price that is taken for one: of 1,000 requests, or of a GB."""


def read_prices(table: Any, name: str) -> dict[str, Any]:
    """Read the table `prices`. name: of the file, for messages. Raises ConfigError."""
    here = f"{name}: [{PRICES}]"
    if not isinstance(table, dict):
        raise ConfigError(f"{name}: {PRICES} is not a table: write [{PRICES}]")
    for key, value in table.items():
        if key == RETRIEVAL:
            _check_retrieval(value, f"{name}: [{PRICES}.{RETRIEVAL}]")
        elif key in REQUESTS or _CLASS.fullmatch(key):
            _check_price(key, value, here, "for each 1,000 requests")
        else:
            known = ", ".join((*REQUESTS, RETRIEVAL))
            raise ConfigError(
                f"{here}: the key {key[:100]!r} is unknown: use {known} or a storage class like STANDARD_IA"
            )
    return dict(table)


def _check_retrieval(table: Any, here: str) -> None:
    if not isinstance(table, Mapping):
        raise ConfigError(f"{here} is not a table: write STANDARD_IA = 0.01 below it")
    for key, value in table.items():
        if not _CLASS.fullmatch(key):
            raise ConfigError(f"{here}: {key[:100]!r} is no storage class: write one like STANDARD_IA")
        _check_price(key, value, here, "for each GB")


def _check_price(key: str, value: Any, here: str, unit: str) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= _MOST:  # not a number (nan) is outside too
        raise ConfigError(f"{here}: {key} is {str(value)[:100]!r}: give dollars {unit}, from 0 to {_MOST:,.0f}")
