"""The options of a rule in auditor.toml, and the sentence for each mistake."""

from __future__ import annotations

from typing import Any

import pytest

from auditor.config.file import read
from auditor.errors import ConfigError
from auditor.rules import RULES


def table(rule: str, options: Any) -> dict[str, Any]:
    """Return the options of a rule as they are read from a settings file."""
    _, tables = read({"rules": {rule: options}}, "auditor.toml")
    return dict(tables["rules"][rule])


REFUSED = [
    ("M01", [], "[rules.M01] is not a table: write its keys below it, as KEY = VALUE"),
    ("M01", {}, "[rules.M01]: the key 'required' is missing: name at least one metadata name"),
    ("M01", {"required": 7}, "[rules.M01]: required is not a list: name at least one metadata name"),
    (
        "M01",
        {"required": ["a"], "requires": 1},
        "[rules.M01]: the key 'requires' is unknown: did you mean required?",
    ),
    ("O01", {"required": ["a"]}, "[rules.O01]: the key 'required' is unknown: use none"),
    ("M01", {"required": []}, "required has a wrong value: name at least one metadata name"),
    ("M01", {"required": [7]}, "required has a wrong entry: write metadata names"),
    ("M01", {"required": [["owner"]]}, "required has a wrong entry: write metadata names"),
    ("M01", {"required": ["owner", ""]}, "required has a wrong entry: write metadata names"),
    ("M01", {"required": ["  "]}, "without spaces"),
    ("M01", {"required": ["cost centre"]}, "without spaces"),
    ("M01", {"required": [" owner"]}, "without spaces"),
    ("M01", {"required": ["owner\n"]}, "without spaces"),
    ("M01", {"required": ["x-amz-meta-owner"]}, "without x-amz-meta-"),
    ("M01", {"required": ["X-Amz-Meta-Owner"]}, "without x-amz-meta-"),
    ("E02", {"accepted": ["aws:kms\n"]}, "such as aws:kms"),
    ("M07", {}, "[rules.M07]: the key 'hosts' is missing: write hosts = [\"..\"]"),
    ("L01", {"mode": "COMPLIANCE"}, "the key 'retention_readable' is missing: write retention_readable = true"),
    ("L01", {"mode": "COMPLIANCE", "retention_readable": 1}, "retention_readable is not true or false: write"),
    ("L02", {"days": "7", "retention_readable": True}, "days is not a whole number: write a number from 0 to"),
    ("R02", {"hours": True}, "hours has a wrong value: write a number from 0 to 8760"),
    ("E02", {"accepted": []}, "at least one"),
    ("E02", {"accepted": ["aws kms"]}, "such as aws:kms"),
    ("E02", {"accepted": [7]}, "such as aws:kms"),
    ("E03", {"keys": []}, "at least one"),
    ("E03", {"keys": ["arn:aws:kms:eu-west-1:111122223333:alias/mine"]}, "aliases"),
    ("E03", {"keys": [["k"]]}, "aliases"),
    ("M02", {"patterns": {}}, "at least one"),
    ("M02", {"patterns": {"x-amz-meta-owner": "a"}}, "without spaces and x-amz-meta-"),
    ("M02", {"patterns": {"cost centre": "a"}}, "without spaces"),
    ("M02", {"patterns": {"owner": 7}}, "with a text: a pattern"),
    ("M02", {"patterns": {"owner": "(a"}}, "ends within a group"),
    ("M02", {"patterns": {"owner": "(?=a)"}}, "only plain groups"),
    ("M07", {"hosts": ["https://www.example.com"]}, "host names"),
    ("M07", {"hosts": ["*.*.example.com"]}, "host names"),
    ("M07", {"hosts": [7]}, "host names"),
    ("L01", {"mode": "governance", "retention_readable": True}, "GOVERNANCE or COMPLIANCE"),
    ("L02", {"days": -1, "retention_readable": True}, "from 0 to"),
    ("L02", {"days": 36501, "retention_readable": True}, "from 0 to"),
    ("R02", {"hours": -1}, "from 0 to"),
    ("R02", {"hours": 8761}, "from 0 to"),
]
ACCEPTED = [
    ("M01", {"required": ["owner", "Retention-Class"]}),
    ("E02", {"accepted": ["aws:kms", "aws:kms:dsse"]}),
    ("E03", {"keys": ["arn:aws:kms:eu-west-1:111122223333:key/11111111-2222-3333-4444-555555555555"]}),
    ("E03", {"keys": ["mrk-1234abcd12ab34cd56ef1234567890ab"]}),
    ("M02", {"patterns": {"Owner": "team-[a-z]+", "retention": "[0-9]{1,2}-years"}}),
    ("M07", {"hosts": []}),
    ("M07", {"hosts": ["www.example.com", "*.example.com"]}),
    ("L01", {"mode": "COMPLIANCE", "retention_readable": False}),
    ("L02", {"days": 0, "retention_readable": True}),
    ("R02", {"hours": 8760}),
]


def test_options_that_mean_nothing_are_refused_in_one_sentence() -> None:
    for rule, options, says in REFUSED:
        with pytest.raises(ConfigError) as refused:
            table(rule, options)
        sentence = str(refused.value)
        assert sentence.startswith("auditor.toml: [rules."), says
        assert says in sentence
        assert sentence.isprintable(), says


def test_options_that_a_rule_accepts() -> None:
    for rule, options in (*ACCEPTED, *((rule.id, {}) for rule in RULES if not rule.options)):
        assert table(rule, options) == options, rule
