"""Read auditor.toml (settings, options of rules, exceptions), and load the settings from all sources."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from auditor.config.accounts import ACCOUNTS, read_accounts
from auditor.config.exceptions import EXCEPTIONS, read_exceptions
from auditor.config.layers import Layer, environment_layer, resolve, variable
from auditor.config.prices import PRICES, read_prices
from auditor.config.settings import SETTINGS, Settings
from auditor.errors import ConfigError, UsageError
from auditor.text import likeliest

log = logging.getLogger(__name__)

DEFAULT_FILE: Final = "auditor.toml"
_TABLES: Final = ("rules", ACCOUNTS, EXCEPTIONS, PRICES)


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

    path: path of the file; None for auditor.toml in the present directory, where it may be missing: both results are
    then empty. judges: as for load_settings().
    """
    name = path or DEFAULT_FILE
    try:
        with Path(name).open("rb") as file:
            import tomllib  # most commands have no file

            document = tomllib.load(file)
    except FileNotFoundError:
        if path is None:
            return Layer({}, str), {}
        raise ConfigError(f"there is no file {name!r}: fix --config") from None
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, too many digits, nested too deep
        raise ConfigError(f"{name} is not TOML: {error}") from error
    except OSError as error:
        raise ConfigError(f"{name} cannot be read ({error.strerror}): fix --config") from error
    return read(document, name, judges=judges)


def read(document: Mapping[str, Any], name: str, *, judges: bool = True) -> tuple[Layer, dict[str, Any]]:
    """Return the settings and tables of a parsed auditor.toml. name: name of the file, for messages. judges: as for
    load_settings(). Raises ConfigError.
    """
    known = SETTINGS.keys() | set(_TABLES)
    if unknown := sorted(document.keys() - known):
        raise ConfigError(f"{name}: the key {unknown[0][:100]!r} is unknown: {_meant(unknown[0], known)}")
    rules = document.get("rules", {})
    if not isinstance(rules, dict):
        raise ConfigError(f"{name}: rules is not a table: write [rules.M01]")
    tables = {
        "rules": dict(rules),
        ACCOUNTS: read_accounts(document.get(ACCOUNTS, []), name),
        EXCEPTIONS: read_exceptions(document.get(EXCEPTIONS, []), name),
        PRICES: read_prices(document.get(PRICES, {}), name),
    }
    if judges and (rules or tables[EXCEPTIONS]):
        from auditor.config.rule_tables import check_rules  # few files name rules, whose import is dear

        check_rules(tables, name)
    return Layer(
        {key: document[key] for key in document.keys() & SETTINGS.keys()}, lambda key: f"{name}: {key}"
    ), tables


def _meant(key: str, known: Iterable[str]) -> str:
    """Return a clause that names the key that was probably meant, or else all keys."""
    meant = likeliest(key, sorted(known))
    return f"did you mean {meant}?" if meant else f"use {', '.join(sorted(known))}"
