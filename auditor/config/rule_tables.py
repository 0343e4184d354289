"""Check the rules that auditor.toml names: those of the tables [rules.ID], and those of [[exceptions]]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from auditor.config.exceptions import EXCEPTIONS, entry_label
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
        _check_options(rule_id, options, registered[rule_id], name)
    _check_exceptions(tables[EXCEPTIONS], registered, name)


def _check_options(rule_id: str, options: Any, rule: Rule, name: str) -> None:
    declared = rule.options
    here = f"{name}: [rules.{rule_id}]"
    if not isinstance(options, dict):
        raise ConfigError(f"{here} is not a table")
    if unknown := sorted(options.keys() - declared.keys()):
        raise ConfigError(f"{here}: the key {unknown[0]!r} is unknown: use {', '.join(declared) or 'none'}")
    if missing := sorted(declared.keys() - options.keys()):
        raise ConfigError(f"{here}: the key {missing[0]!r} is missing")
    for option, kind in declared.items():
        value = options[option]
        if type(value) is not kind:
            raise ConfigError(f"{here}: {option} is not a {kind.__name__}")
    try:
        rule.validate(options)
    except ValueError as error:
        raise ConfigError(f"{here}: {error}") from error


def _check_exceptions(entries: Sequence[ExceptionEntry], registered: Mapping[str, Rule], name: str) -> None:
    for number, entry in enumerate(entries, 1):
        here = entry_label(name, number, len(entries))
        if entry.rule is None:
            continue
        if entry.rule not in registered:
            raise ConfigError(f"{here}: {no_rule(entry.rule, RULES)}")
        keyed = next((key for key in ("prefix", "pattern") if getattr(entry, key) is not None), None)
        if keyed and not registered[entry.rule].per_object:
            raise ConfigError(f"{here}: rule {entry.rule} is on the bucket itself: remove the {keyed}")
