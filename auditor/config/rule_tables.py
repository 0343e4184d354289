"""Find and check the rules that auditor.toml names: those of the tables [rules.ID], and those of [[exceptions]]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import defstruct
from msgspec.structs import replace

from auditor.config.entries import EXCEPTIONS
from auditor.config.toml_tables import entry_label, read_table
from auditor.errors import ConfigError
from auditor.model.exception import ExceptionEntry
from auditor.rules import RULES, RULES_BY_ID
from auditor.rules.base import Rule
from auditor.rules.named import no_rule, rule_id


def named_rules(tables: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the tables of auditor.toml with the ID of each rule that they name by its ID or name. name: name of the
    file, for messages.

    Raises ConfigError for a rule that there is not or that has two tables, for wrong options of a rule, and for an
    exception with keys for a rule on the bucket itself.
    """
    options: dict[str, Any] = {}
    for given, table in tables["rules"].items():
        rule = RULES_BY_ID.get(rule_id(given, RULES))
        if rule is None:
            raise ConfigError(f"{name}: {no_rule(given, RULES)}")
        if rule.id in options:
            raise ConfigError(f"{name}: [rules.{given}] is a second table of rule {rule.id}: write one")
        _check_options(table, rule, f"{name}: [rules.{given}]")
        options[rule.id] = table
    return {**tables, "rules": options, EXCEPTIONS: _named_exceptions(tables[EXCEPTIONS], name)}


def _check_options(options: Any, rule: Rule, here: str) -> None:
    read_table(options, defstruct("Options", list(rule.options.items()), forbid_unknown_fields=True), here)
    try:
        if rule.validate is not None:
            rule.validate(options)
    except ValueError as error:
        raise ConfigError(f"{here}: {error}") from error


def _named_exceptions(entries: Sequence[ExceptionEntry], name: str) -> tuple[ExceptionEntry, ...]:
    found = [replace(entry, rule=entry.rule and rule_id(entry.rule, RULES)) for entry in entries]
    for number, (entry, given) in enumerate(zip(found, entries, strict=True), 1):
        here = entry_label(name, EXCEPTIONS, number, len(entries))
        if given.rule and entry.rule not in RULES_BY_ID:
            raise ConfigError(f"{here}: {no_rule(given.rule, RULES)}")
        keyed = "prefix" if entry.prefix else "pattern" if entry.pattern else None
        if entry.rule and keyed and not RULES_BY_ID[entry.rule].per_object:
            raise ConfigError(f"{here}: rule {given.rule} is on the bucket itself: remove the {keyed}")
    return tuple(found)
