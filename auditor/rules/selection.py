"""Select the rules of a run: by --only, --ignore, the level, the ledger and the options in auditor.toml."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from auditor.errors import UsageError
from auditor.rules.base import Rule
from auditor.rules.named import no_rule, rule_id


def select(
    rules: Sequence[Rule],
    options: Mapping[str, Mapping[str, Any]],
    only: Iterable[str],
    ignore: Iterable[str],
    level: str | None = None,
    *,
    ledger: bool = True,
) -> tuple[Rule, ...]:
    """Return the rules of a run, in the order of `rules`.

    only: IDs or names of the rules to choose; empty for all. ignore: those of the rules to leave out. options: the
    options in auditor.toml, by rule ID. level: "exposure" if the run sends no HEAD. ledger: True if the run has a
    ledger.

    A rule is left out if auditor.toml lacks its options, if it reads the HEAD and the level is "exposure", or if it
    reads digests and there is no ledger. Raises UsageError for an unknown rule, for a rule in `only` that lacks its
    options or the ledger, and if no rule is left.
    """
    known = {rule.id for rule in rules}
    only, ignore = tuple(only), tuple(ignore)
    named = {name: rule_id(name, rules) for name in (*only, *ignore)}
    if unknown := [name for name, ident in named.items() if ident not in known]:
        raise UsageError(no_rule(unknown[0], rules))
    only, ignore = {named[name] for name in only}, {named[name] for name in ignore}
    chosen = [rule for rule in rules if (not only or rule.id in only) and rule.id not in ignore]
    if level == "exposure":
        chosen = [rule for rule in chosen if not rule.needs("head")]
    if not ledger:
        if lacking := [rule.id for rule in chosen if "digests" in rule.reads and rule.id in only]:
            raise UsageError(f"rule {lacking[0]} compares with a ledger: add --ledger sqlite:PATH")
        chosen = [rule for rule in chosen if "digests" not in rule.reads]
    ready = [rule for rule in chosen if set(rule.options) <= set(options.get(rule.id, {}))]
    if missing := [rule for rule in chosen if rule not in ready and rule.id in only]:
        first = missing[0]
        raise UsageError(
            f"rule {first.id} needs its options: add [rules.{first.id}] with {', '.join(first.options)} to auditor.toml"
        )
    if not ready:
        raise UsageError("no rule is selected: loosen --only or --ignore")
    return tuple(ready)
