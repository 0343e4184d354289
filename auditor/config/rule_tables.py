"""Check the rules that auditor.toml names: those of the tables [rules.ID], and those of [[exceptions]]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import defstruct

from auditor.config.exceptions import EXCEPTIONS
from auditor.config.toml_tables import entry_label, read_table
from auditor.errors import ConfigError
from auditor.model.exception import ExceptionEntry
from auditor.rules import RULES
from auditor.rules.base import Rule
from auditor.rules.unknown import no_rule


def check_rules(tables: Mapping[str, Any], name: str) -> None:
    """Raise ConfigError for a rule that there is not, for wrong options of a rule, and for an exception with keys for a
    rule on the bucket itself. tables: those of auditor.toml. name: name of the file, for messages.
    """
    registered = {rule.id: rule for rule in RULES}
    for rule_id, options in tables["rules"].items():
        if rule_id not in registered:
            raise ConfigError(f"{name}: {no_rule(rule_id, RULES)}")
        _check_options(options, registered[rule_id], f"{name}: [rules.{rule_id}]")
    _check_exceptions(tables[EXCEPTIONS], registered, name)


def _check_options(options: Any, rule: Rule, here: str) -> None:
    read_table(options, defstruct("Options", list(rule.options.items()), forbid_unknown_fields=True), here)
    try:
        if rule.validate is not None:
            rule.validate(options)
    except ValueError as error:
        raise ConfigError(f"{here}: {error}") from error


def _check_exceptions(entries: Sequence[ExceptionEntry], registered: Mapping[str, Rule], name: str) -> None:
    for number, entry in enumerate(entries, 1):
        here = entry_label(name, EXCEPTIONS, number, len(entries))
        if entry.rule and entry.rule not in registered:
            raise ConfigError(f"{here}: {no_rule(entry.rule, RULES)}")
        keyed = "prefix" if entry.prefix else "pattern" if entry.pattern else None
        if entry.rule and keyed and not registered[entry.rule].per_object:
            raise ConfigError(f"{here}: rule {entry.rule} is on the bucket itself: remove the {keyed}")
