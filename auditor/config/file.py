"""Read auditor.toml (settings, options of rules, exceptions), and load the settings from all sources."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any, Final

from msgspec import Meta, Struct, field
from msgspec.structs import asdict, replace

from auditor.config.entries import NamedAccount, check_accounts, checked_exceptions
from auditor.config.layers import Layer, environment_layer, resolve, variable
from auditor.config.settings import SETTINGS, Settings
from auditor.config.toml_tables import read_table, read_toml, unknown_key
from auditor.errors import ConfigError, UsageError
from auditor.model.exception import ExceptionEntry
from auditor.model.toml_forms import form
from auditor.s3.prices import REQUESTS, RETRIEVAL

DEFAULT_FILE: Final = "auditor.toml"
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


class _Tables(Struct):
    """The tables of auditor.toml."""

    rules: Annotated[dict[str, Any], form("write [rules.M01]")] = field(default_factory=dict)
    accounts: Annotated[tuple[NamedAccount, ...], Meta(max_length=100_000)] = ()
    exceptions: Annotated[tuple[ExceptionEntry, ...], Meta(max_length=10_000)] = ()
    prices: Annotated[dict[str, Any], form("write [prices]")] = field(default_factory=dict)


def load_settings(
    first: Layer | None = None,
    environ: Mapping[str, str] = os.environ,
    *,
    path: str | None = None,
    needed: Sequence[str] = (),
    function: str = "",
    judges: bool = True,
) -> Settings:
    """Load the settings from `first` (the flags of a command, or the event of a function), environment variables and
    auditor.toml.

    The first of these sources that has a setting wins. path: path of the file to read in place of the one in
    AUDITOR_CONFIG. needed: names of settings that the Lambda function `function` cannot work without. judges: False for
    a function that judges no object: it leaves the rules in the file to the audit to check. Raises UsageError.
    """
    file, tables = load(path or environ.get("AUDITOR_CONFIG") or None, judges=judges)
    layers = [*([first] if first else []), environment_layer(environ), file]
    for name in needed:
        if not any(layer.values.get(name) for layer in layers):
            raise UsageError(f"{variable(name)} is not set: the {function} function needs it")
    return resolve(layers, tables)


def load(path: str | None, *, judges: bool = True) -> tuple[Layer, dict[str, Any]]:
    """Read auditor.toml: return its settings, and its tables (`rules`, `accounts`, `exceptions` and so on). Raises
    ConfigError.

    path: path of the file; None for auditor.toml in the present directory, where it may be missing. judges: as
    for load_settings().
    """
    name = path or DEFAULT_FILE
    return read(read_toml(name, "--config", needed=path is not None), name, judges=judges)


def read(
    document: Mapping[str, Any], name: str, *, judges: bool = True, today: date | None = None
) -> tuple[Layer, dict[str, Any]]:
    """Return the settings and tables of a parsed auditor.toml. name: name of the file, for messages. judges: as for
    load_settings(). today: None for the present day in UTC. Raises ConfigError.
    """
    known = {*SETTINGS, *_Tables.__struct_fields__}
    if unknown := sorted(document.keys() - known):
        raise ConfigError(unknown_key(unknown[0], known, name))
    given = read_table({key: document[key] for key in document.keys() - SETTINGS.keys()}, _Tables, name)
    check_accounts(given.accounts, name)
    exceptions = checked_exceptions(given.exceptions, name, today)
    tables = asdict(replace(given, exceptions=exceptions, prices=read_prices(given.prices, name)))
    if judges and (given.rules or given.exceptions):
        from auditor.config.rule_tables import named_rules  # few files name rules, whose import is dear

        tables = named_rules(tables, name)
    values = {key: document[key] for key in document.keys() & SETTINGS.keys()}
    return Layer(values, lambda key: f"{name}: {key}"), tables
