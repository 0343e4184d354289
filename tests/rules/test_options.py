"""The options of a rule in auditor.toml, and the sentence for each mistake."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from auditor.config.file import read
from auditor.errors import ConfigError
from auditor.rules import RULES


def table(rule: str, options: Any) -> dict[str, Any]:
    """Return the options of a rule as they are read from a settings file."""
    _, tables = read({"rules": {rule: options}}, "auditor.toml")
    return dict(tables["rules"][rule])


TABLES = tomllib.loads((Path(__file__).parent / "tables" / "options.toml").read_text(encoding="utf-8"))


def test_options_that_mean_nothing_are_refused_in_one_sentence() -> None:
    for rule, options, says in TABLES["refused"]:
        with pytest.raises(ConfigError) as refused:
            table(rule, options)
        sentence = str(refused.value)
        assert sentence.startswith("auditor.toml: [rules."), says
        assert says in sentence
        assert sentence.isprintable(), says


def test_options_that_a_rule_accepts() -> None:
    for rule, options in (*TABLES["accepted"], *((rule.id, {}) for rule in RULES if not rule.options)):
        assert table(rule, options) == options, rule
