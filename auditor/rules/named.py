"""Find the rule that a user names by its ID or its name, and say which one was probably meant if there is none."""

from __future__ import annotations

import re
from collections.abc import Iterable

from auditor.rules.base import Rule
from auditor.text import likeliest, shorten, visible


def rule_id(given: str, rules: Iterable[Rule]) -> str:
    """Return the ID of the rule that has this ID or name, whatever the case of its letters. Any other text is returned
    in capitals, as IDs are written.
    """
    return next((rule.id for rule in rules if rule.name == given.lower()), given.upper())


def no_rule(given: str, rules: Iterable[Rule]) -> str:
    """Return the sentence for an ID or name that no rule has, with a rule of a like ID or name."""
    by_word = {word: rule for rule in rules for word in (rule.name, rule.id)}
    number = re.fullmatch(r"([A-Z])\W?0*([0-9]{1,2})", given.upper())
    ident = f"{number[1]}{number[2]:0>2}" if number else given.upper()
    alike = likeliest(ident, [word for word in by_word if word.isupper()])
    alike = alike or likeliest(given.lower(), [word for word in by_word if word.islower()])
    meant = f"did you mean {by_word[alike].id} ({by_word[alike].name})? " if alike else ""
    return f"there is no rule {shorten(visible(given), 80)!r}: {meant}`auditor rules` lists them"
